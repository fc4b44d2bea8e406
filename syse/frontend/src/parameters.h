/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parameters in a request's target: "/search?q=blue+sky&n=5".
 */
#ifndef SYSE_PARAMETERS_H
#define SYSE_PARAMETERS_H

#include <stddef.h>
#include <stdint.h>

enum parameter_outcome {
	PARAMETER_FOUND,
	PARAMETER_MISSING,
	PARAMETER_MALFORMED, /* "%" without two digits, not UTF-8, or a control character */
	PARAMETER_TOO_LONG
};

/*
 * Decodes the first parameter of this name in query (the text after "?") into out,
 * NUL-terminated. "+" and percent escapes are decoded, white space becomes spaces,
 * and leading and trailing space is removed.
 */
enum parameter_outcome parameter_text(const char *query, size_t query_length, const char *name,
    char *out, size_t out_size, size_t *length);

/*
 * The same for a number of at most nine digits. If it is absent or empty, *number
 * stays as it is and the result is PARAMETER_MISSING.
 */
enum parameter_outcome parameter_number(
    const char *query, size_t query_length, const char *name, uint32_t *number);

#endif
