/* SPDX-License-Identifier: BSD-2-Clause */
#include "shallow.h"

#include <stdbool.h>

/*
 * jansson recurses for each bracket, up to 2,048 of them, and 750 are more than a session's stack
 * holds. So they are counted first. Strings are told apart as jansson does; where it finds a
 * mistake, it reads no further, and brackets behind that only make a refused text refused.
 */
static bool
is_shallow(const char *text, size_t size)
{
	size_t depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '"')
			quoted = !quoted;
		else if (quoted && c == '\\')
			i++;
		else if (!quoted && (c == '[' || c == '{') && ++depth > SHALLOW_DEPTH_MAX)
			return false;
		else if (!quoted && (c == ']' || c == '}') && depth > 0)
			depth--;
	}
	return true;
}

json_t *
shallow_read(const char *text, size_t size)
{
	if (!is_shallow(text, size))
		return NULL;
	return json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
}
