/* SPDX-License-Identifier: BSD-2-Clause
 *
 * UTF-8 (RFC 3629), strictly: overlong forms, surrogates and values above
 * U+10FFFF are invalid.
 */
#ifndef SYSE_UTF8_H
#define SYSE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, stands for what was invalid */

/* Decodes one character at s. Returns its length in bytes (1..4), or 0 when the bytes are no
 * character. */
size_t utf8_decode(const char *s, size_t size, uint32_t *character);

bool utf8_valid(const char *s, size_t size);

/*
 * The lower-case form of a character, for comparing without regard to case:
 * Latin, Greek and Cyrillic letters that have a one-to-one form. Others are
 * returned as they are.
 */
uint32_t utf8_fold(uint32_t character);

/* Whether the character is part of a word: letters and digits of any script, but not punctuation.
 */
bool utf8_in_word(uint32_t character);

/* The largest offset <= at that begins a character. */
size_t utf8_floor(const char *s, size_t at);

#endif
