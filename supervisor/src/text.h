/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Texts in records: fields of a fixed size, UTF-8, padded with NULs.
 */
#ifndef SUPERVISOR_TEXT_H
#define SUPERVISOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reports whether a field holds valid UTF-8 that ends with a NUL and has only NULs after
 * it: otherwise two readers could see two texts.
 */
bool text_valid(const char *field, size_t size);

/*
 * Copies text into a field and pads it with NULs. A text that is too long is cut before
 * a character that does not fit.
 */
void text_copy(char *field, size_t size, const char *text);

#endif
