/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdint.h>
#include <string.h>

static bool
continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/*
 * The length of the character that begins here, 0 if none does (RFC 3629, section 4). The
 * NUL after the text is not a continuation, so nothing after it is read.
 */
static size_t
character(const uint8_t *at)
{
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		return continues(at[1]) ? 2 : 0;
	if (at[0] >= 0xe0 && at[0] <= 0xef) {
		uint8_t low = at[0] == 0xe0 ? 0xa0 : 0x80, high = at[0] == 0xed ? 0x9f : 0xbf;

		return at[1] >= low && at[1] <= high && continues(at[2]) ? 3 : 0;
	}
	if (at[0] >= 0xf0 && at[0] <= 0xf4) {
		uint8_t low = at[0] == 0xf0 ? 0x90 : 0x80, high = at[0] == 0xf4 ? 0x8f : 0xbf;

		return at[1] >= low && at[1] <= high && continues(at[2]) && continues(at[3]) ? 4
											     : 0;
	}
	return 0;
}

bool
text_valid(const char *field, size_t size)
{
	size_t length = strnlen(field, size);
	const uint8_t *at = (const uint8_t *)field;

	if (length == size)
		return false;
	for (size_t i = length; i < size; i++)
		if (field[i] != '\0')
			return false;
	while (*at != '\0') {
		size_t step = character(at);

		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

void
text_copy(char *field, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size) {
		length = size - 1;
		while (length > 0 && continues((uint8_t)text[length]))
			length--;
	}
	memset(field, 0, size);
	memcpy(field, text, length);
}
