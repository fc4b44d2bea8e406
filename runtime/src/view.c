/* SPDX-License-Identifier: BSD-2-Clause */
#include "view.h"

/* Appends a decimal number and the character after. Returns the new end. */
static char *
append(char *out, uint32_t number, char after)
{
	char digits[10];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	while (count > 0)
		*out++ = digits[--count];
	*out++ = after;
	return out;
}

/* Written by hand: it runs once per document, and snprintf was slow in profiles. */
void
shai_view_name(uint32_t class, uint32_t conduit, char out[SHAI_VIEW_NAME_SIZE])
{
	shai_view_name_in_class(conduit, append(out, class, '/'));
}

void
shai_view_name_in_class(uint32_t conduit, char out[SHAI_VIEW_NAME_SIZE])
{
	out = append(out, conduit >> SHAI_VIEW_BUCKET_BITS, '/');
	(void)append(out, conduit, '\0');
}

void
shai_view_class_name(uint32_t class, char out[SHAI_VIEW_CLASS_SIZE])
{
	(void)append(out, class, '\0');
}

size_t
shai_class_position(const uint32_t *classes, size_t count, uint32_t class)
{
	size_t low = 0;
	size_t left = count;

	while (left > 0) {
		size_t half = left / 2;

		if (classes[low + half] == class)
			return low + half;
		if (classes[low + half] < class) {
			low += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	return count;
}

/*
 * Written by hand: strtoul would accept signs, blanks and leading zeros, which the
 * name of a class directory never has.
 */
bool
shai_view_class(const char *path, uint32_t *class, const char **rest)
{
	uint64_t value = 0;

	if (*path < '1' || *path > '9')
		return false;
	for (; *path >= '0' && *path <= '9'; path++) {
		value = value * 10 + (uint64_t)(*path - '0');
		if (value > UINT32_MAX)
			return false;
	}
	if (*path != '\0' && *path != '/')
		return false;
	*class = (uint32_t)value;
	*rest = *path == '\0' ? "." : path + 1;
	return true;
}
