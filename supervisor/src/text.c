/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdint.h>
#include <string.h>

#include "shai_text.h"

bool
text_valid(const char *field, size_t size)
{
	size_t length = strnlen(field, size);

	if (length == size)
		return false;
	for (size_t i = length; i < size; i++)
		if (field[i] != '\0')
			return false;
	return shai_text_valid(field);
}

void
text_copy(char *field, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size) {
		length = size - 1;
		while (length > 0 && shai_text_continues((uint8_t)text[length]))
			length--;
	}
	memset(field, 0, size);
	memcpy(field, text, length);
}
