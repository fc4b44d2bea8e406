/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Text that is built in storage of a fixed size. Text that does not fit sets
 * "overflowed" and is not appended; the writer checks once, at the end.
 */
#ifndef SYSE_TEXT_H
#define SYSE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* borrowed from text_init's caller; not NUL-terminated */
	size_t length;
	size_t capacity;
	bool overflowed;
};

void text_init(struct text *text, char *storage, size_t capacity);

void text_append(struct text *text, const char *data, size_t size);
void text_string(struct text *text, const char *string);
void text_number(struct text *text, uint64_t number);

/*
 * Functions that append data from outside. All replace bytes that are not UTF-8 by
 * U+FFFD.
 *
 * text_json: a JSON string with its quotes (RFC 8259). "<", ">" and "&" are escaped too,
 * so that an answer that is mistaken for HTML does no harm. text_json_plain does not
 * escape them; it is for programs and for lines that must be short.
 *
 * text_html: character data or the inside of a quoted attribute. Control characters
 * other than tab and line breaks are replaced.
 */
void text_json(struct text *text, const char *data, size_t size);
void text_json_plain(struct text *text, const char *data, size_t size);
void text_json_string(struct text *text, const char *string);
void text_html(struct text *text, const char *data, size_t size);
void text_html_string(struct text *text, const char *string);

/*
 * Appends data as policies write a string, with its quotes. Control characters and bytes that are
 * not UTF-8 stay as they are: the monitor refuses them.
 */
void text_quoted(struct text *text, const char *data, size_t size);

/* Appends data in lower-case hexadecimal, without quotes. */
void text_hex(struct text *text, const uint8_t *data, size_t size);

#endif
