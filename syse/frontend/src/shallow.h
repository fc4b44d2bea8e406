/* SPDX-License-Identifier: BSD-2-Clause
 *
 * JSON that others have written, read on the small stack of a session.
 */
#ifndef SYSE_SHALLOW_H
#define SYSE_SHALLOW_H

#include <jansson.h>
#include <stddef.h>

#define SHALLOW_DEPTH_MAX 8 /* arrays and objects in each other; nothing here needs more than 2 */

/*
 * Parses an object or array without duplicate names. Returns a reference that the caller
 * releases, or NULL: it is malformed, nested too deeply, or too large for the heap.
 */
json_t *shallow_read(const char *text, size_t size);

#endif
