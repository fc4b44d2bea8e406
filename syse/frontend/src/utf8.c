/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"

static bool
continuation(const char *s, size_t size, size_t at)
{
	return at < size && ((unsigned char)s[at] & 0xC0) == 0x80;
}

size_t
utf8_decode(const char *s, size_t size, uint32_t *character)
{
	static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char lead;
	size_t length;
	uint32_t value;

	if (size == 0)
		return 0;
	lead = (unsigned char)s[0];
	if (lead < 0x80) {
		*character = lead;
		return 1;
	}
	if (lead < 0xC2 || lead > 0xF4)
		return 0;
	length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
	value = lead & (0x7Fu >> length);
	for (size_t i = 1; i < length; i++) {
		if (!continuation(s, size, i))
			return 0;
		value = value << 6 | ((unsigned char)s[i] & 0x3Fu);
	}
	if (value < smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
		return 0;
	*character = value;
	return length;
}

bool
utf8_valid(const char *s, size_t size)
{
	uint32_t character;

	for (size_t at = 0; at < size;) {
		size_t length = utf8_decode(s + at, size - at, &character);

		if (length == 0)
			return false;
		at += length;
	}
	return true;
}

uint32_t
utf8_fold(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c + 32;
	if (c < 0xC0)
		return c;
	if (c <= 0xDE)
		return c == 0xD7 ? c : c + 32; /* 0xD7 is the multiplication sign */
	if (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131)
		return c | 1; /* Latin Extended-A: pairs, upper case even */
	if (c >= 0x14A && c <= 0x177)
		return c | 1;
	if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E))
		return c + (c & 1); /* pairs, upper case odd */
	if (c >= 0x391 && c <= 0x3A9)
		return c + 32; /* Greek */
	if (c >= 0x410 && c <= 0x42F)
		return c + 32; /* Cyrillic */
	if (c >= 0x400 && c <= 0x40F)
		return c + 80;
	return c;
}

bool
utf8_in_word(uint32_t c)
{
	if (c < 0x80)
		return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		       c == '_';
	if (c < 0xC0)
		return c == 0xAA || c == 0xB5 || c == 0xBA;
	if (c == 0xD7 || c == 0xF7)
		return false;
	if (c >= 0x2000 && c <= 0x206F)
		return false; /* general punctuation, spaces */
	return !(c >= 0x3000 && c <= 0x303F) && c != 0xFEFF && c != 0xFFFD;
}

size_t
utf8_floor(const char *s, size_t at)
{
	size_t floor = at;

	while (floor > 0 && at - floor < 3 && ((unsigned char)s[floor] & 0xC0) == 0x80)
		floor--;
	/* Four continuation bytes in a row are not UTF-8, so any cut is as good. */
	return ((unsigned char)s[floor] & 0xC0) == 0x80 ? at : floor;
}
