/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <string.h>

#include "utf8.h"

static const char DIGITS[] = "0123456789abcdef";

void
text_init(struct text *text, char *storage, size_t capacity)
{
	text->data = storage;
	text->length = 0;
	text->capacity = capacity;
	text->overflowed = false;
}

void
text_append(struct text *text, const char *data, size_t size)
{
	if (text->overflowed || size > text->capacity - text->length) {
		text->overflowed = true;
		return;
	}
	memcpy(text->data + text->length, data, size);
	text->length += size;
}

void
text_string(struct text *text, const char *string)
{
	text_append(text, string, strlen(string));
}

void
text_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t first = sizeof digits;

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	text_append(text, digits + first, sizeof digits - first);
}

void
text_hex(struct text *text, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char pair[2] = {DIGITS[data[i] >> 4], DIGITS[data[i] & 15]};

		text_append(text, pair, 2);
	}
}

/*
 * Returns the escape of an ASCII character in a JSON string, or NULL if it needs
 * none.
 */
static const char *
json_escape(unsigned char c, char storage[7])
{
	switch (c) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\n':
		return "\\n";
	case '\t':
		return "\\t";
	case '\r':
		return "\\r";
	default:
		break;
	}
	if (c >= 0x20 && c != 0x7F)
		return NULL;
	memcpy(storage, "\\u00", 4);
	storage[4] = DIGITS[c >> 4];
	storage[5] = DIGITS[c & 15];
	storage[6] = '\0';
	return storage;
}

static const char *
json_html_escape(unsigned char c, char storage[7])
{
	switch (c) {
	case '<':
		return "\\u003c";
	case '>':
		return "\\u003e";
	case '&':
		return "\\u0026";
	default:
		return json_escape(c, storage);
	}
}

static const char *
html_escape(unsigned char c, char storage[7])
{
	(void)storage;
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '\t':
	case '\n':
	case '\r':
		return NULL;
	default:
		return c < 0x20 || c == 0x7F ? UTF8_REPLACEMENT : NULL;
	}
}

/* Copies each run that needs no escape in one piece. */
static void
escaped(
    struct text *text, const char *data, size_t size, const char *(*escape)(unsigned char, char[7]))
{
	size_t run = 0; /* start of the bytes that are not copied yet */

	for (size_t at = 0; at < size;) {
		uint32_t character = 0;
		char storage[7];
		size_t length = utf8_decode(data + at, size - at, &character);
		const char *replacement = NULL;

		if (length == 0)
			replacement = UTF8_REPLACEMENT;
		else if (length == 1)
			replacement = escape((unsigned char)character, storage);
		if (replacement != NULL) {
			text_append(text, data + run, at - run);
			text_string(text, replacement);
			run = at + 1; /* only single bytes are replaced */
		}
		at += length == 0 ? 1 : length;
	}
	text_append(text, data + run, size - run);
}

void
text_json(struct text *text, const char *data, size_t size)
{
	text_append(text, "\"", 1);
	escaped(text, data, size, json_html_escape);
	text_append(text, "\"", 1);
}

void
text_json_plain(struct text *text, const char *data, size_t size)
{
	text_append(text, "\"", 1);
	escaped(text, data, size, json_escape);
	text_append(text, "\"", 1);
}

void
text_json_string(struct text *text, const char *string)
{
	text_json(text, string, strlen(string));
}

void
text_html(struct text *text, const char *data, size_t size)
{
	escaped(text, data, size, html_escape);
}

void
text_html_string(struct text *text, const char *string)
{
	text_html(text, string, strlen(string));
}

void
text_quoted(struct text *text, const char *data, size_t size)
{
	text_append(text, "\"", 1);
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '"' || data[i] == '\\')
			text_append(text, "\\", 1);
		text_append(text, &data[i], 1);
	}
	text_append(text, "\"", 1);
}
