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
	out = append(out, class, '/');
	out = append(out, conduit >> SHAI_VIEW_BUCKET_BITS, '/');
	(void)append(out, conduit, '\0');
}

void
shai_view_class_name(uint32_t class, char out[SHAI_VIEW_CLASS_SIZE])
{
	(void)append(out, class, '\0');
}

bool
shai_class_member(const uint32_t *classes, size_t count, uint32_t class)
{
	size_t low = 0;

	while (count > 0) {
		size_t half = count / 2;

		if (classes[low + half] == class)
			return true;
		if (classes[low + half] < class) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return false;
}
