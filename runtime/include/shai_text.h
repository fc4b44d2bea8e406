/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a text in a record is: the library sends no other, the supervisor takes no other.
 */
#ifndef SHAI_TEXT_H
#define SHAI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool
shai_text_continues(uint8_t byte)
{
	return (byte & 0xc0) == 0x80;
}

/*
 * The length of the character that begins here, 0 if none does (RFC 3629, section 4). The
 * NUL after the text is not a continuation, so nothing after it is read.
 */
static inline size_t
shai_text_character(const uint8_t *at)
{
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		return shai_text_continues(at[1]) ? 2 : 0;
	if (at[0] >= 0xe0 && at[0] <= 0xef) {
		uint8_t low = at[0] == 0xe0 ? 0xa0 : 0x80, high = at[0] == 0xed ? 0x9f : 0xbf;

		return at[1] >= low && at[1] <= high && shai_text_continues(at[2]) ? 3 : 0;
	}
	if (at[0] >= 0xf0 && at[0] <= 0xf4) {
		uint8_t low = at[0] == 0xf0 ? 0x90 : 0x80, high = at[0] == 0xf4 ? 0x8f : 0xbf;

		return at[1] >= low && at[1] <= high && shai_text_continues(at[2]) &&
			       shai_text_continues(at[3])
			   ? 4
			   : 0;
	}
	return 0;
}

/* Reports whether a text, which ends with a NUL, is UTF-8. */
static inline bool
shai_text_valid(const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	while (*at != '\0') {
		size_t step = shai_text_character(at);

		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

#endif
