/* SPDX-License-Identifier: BSD-2-Clause */
#include "parameters.h"

#include <stdbool.h>
#include <string.h>

#include "utf8.h"

static int
digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 32) >= 'a' && (c | 32) <= 'f')
		return (c | 32) - 'a' + 10;
	return -1;
}

/* Decodes one byte at *at and advances *at. Returns -1 if it is malformed. */
static int
decode(const char *data, size_t size, size_t *at)
{
	int high, low;

	if (data[*at] == '+') {
		(*at)++;
		return ' ';
	}
	if (data[*at] != '%')
		return (unsigned char)data[(*at)++];
	if (size - *at < 3)
		return -1;
	high = digit(data[*at + 1]);
	low = digit(data[*at + 2]);
	*at += 3;
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static size_t
trim(char *text, size_t length)
{
	size_t start = 0;

	while (length > 0 && text[length - 1] == ' ')
		length--;
	while (start < length && text[start] == ' ')
		start++;
	memmove(text, text + start, length - start);
	text[length - start] = '\0';
	return length - start;
}

static enum parameter_outcome
decode_value(const char *value, size_t size, char *out, size_t out_size, size_t *length)
{
	size_t written = 0;

	for (size_t at = 0; at < size;) {
		int byte = decode(value, size, &at);

		if (byte == '\t' || byte == '\n' || byte == '\r')
			byte = ' ';
		if (byte < 0x20 || byte == 0x7F)
			return PARAMETER_MALFORMED;
		if (written + 1 >= out_size)
			return PARAMETER_TOO_LONG;
		out[written++] = (char)byte;
	}
	if (!utf8_valid(out, written))
		return PARAMETER_MALFORMED;
	*length = trim(out, written);
	return PARAMETER_FOUND;
}

enum parameter_outcome
parameter_text(const char *query, size_t query_length, const char *name, char *out, size_t out_size,
    size_t *length)
{
	size_t name_length = strlen(name);

	for (size_t at = 0; at < query_length;) {
		const char *pair = query + at;
		const char *end = memchr(pair, '&', query_length - at);
		size_t size = end != NULL ? (size_t)(end - pair) : query_length - at;

		if (size > name_length && memcmp(pair, name, name_length) == 0 &&
		    pair[name_length] == '=')
			return decode_value(
			    pair + name_length + 1, size - name_length - 1, out, out_size, length);
		at += size + 1;
	}
	return PARAMETER_MISSING;
}

enum parameter_outcome
parameter_number(const char *query, size_t query_length, const char *name, uint32_t *number)
{
	char digits[10];
	size_t length;
	uint32_t value = 0;
	enum parameter_outcome outcome =
	    parameter_text(query, query_length, name, digits, sizeof digits, &length);

	if (outcome != PARAMETER_FOUND)
		return outcome;
	if (length == 0)
		return PARAMETER_MISSING;
	for (size_t i = 0; i < length; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return PARAMETER_MALFORMED;
		value = value * 10 + (uint32_t)(digits[i] - '0');
	}
	*number = value;
	return PARAMETER_FOUND;
}
