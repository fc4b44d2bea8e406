/* SPDX-License-Identifier: BSD-2-Clause */
#include "document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "utf8.h"

static size_t
copy_cut(char *to, size_t capacity, const char *data, size_t size)
{
	if (size > capacity)
		size = utf8_floor(data, capacity);
	memcpy(to, data, size);
	return size;
}

/* Reports whether the line is "name: value", and sets *value if it is. */
static bool
header_value(const char *line, size_t size, const char *name, struct span *value)
{
	size_t length = strlen(name);

	if (size < length + 1 || memcmp(line, name, length) != 0 || line[length] != ':')
		return false;
	value->start = length + 1;
	while (value->start < size && line[value->start] == ' ')
		value->start++;
	value->length = size - value->start;
	return true;
}

static bool
parse_header_line(struct document *document, const char *line, size_t size)
{
	struct span value;

	if (header_value(line, size, "title", &value))
		document->title_length = copy_cut(
		    document->title, sizeof document->title, line + value.start, value.length);
	else if (header_value(line, size, "owner", &value))
		document->owner.length = copy_cut(document->owner.data, sizeof document->owner.data,
		    line + value.start, value.length);
	else if (header_value(line, size, "visibility", &value))
		document->visibility.length = copy_cut(document->visibility.data,
		    sizeof document->visibility.data, line + value.start, value.length);
	else
		return false;
	return true;
}

/* Returns where the text begins. A file without a header is all text. */
static size_t
parse_header(struct document *document, const char *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const char *line = data + at;
		const char *end = memchr(line, '\n', size - at);
		size_t length = end != NULL ? (size_t)(end - line) : size - at;
		size_t next = end != NULL ? at + length + 1 : size;

		if (length > 0 && line[length - 1] == '\r')
			length--;
		if (length == 0)
			return next;
		if (!parse_header_line(document, line, length))
			return at;
		at = next;
	}
	return at;
}

void
document_parse(struct document *document, const char *data, size_t size, const struct terms *query,
    const struct terms *interests)
{
	struct text snippet;
	struct span hit;
	size_t body;

	document->title_length = document->owner.length = document->visibility.length = 0;
	body = parse_header(document, data, size);
	text_init(&snippet, document->snippet, sizeof document->snippet);
	snippet_write(&snippet, query, data + body, size - body);
	document->snippet_length = snippet.length;
	document->interesting =
	    terms_find(interests, TERMS_WHOLE, document->title, document->title_length, 0, &hit) ||
	    terms_find(interests, TERMS_WHOLE, data + body, size - body, 0, &hit);
}

int
document_read(struct document *document, int descriptor, const struct terms *query,
    const struct terms *interests)
{
	static char data[DOCUMENT_READ_MAX];
	ssize_t got;

	/* read(2) returns all data of a regular file at once, so one call is enough. */
	do
		got = read(descriptor, data, sizeof data);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -1;
	document_parse(document, data, (size_t)got, query, interests);
	return 0;
}

int
document_open(struct shai_session *session, uint32_t id, struct document *document, char *reason,
    size_t reason_size)
{
	static const struct terms none;
	struct shai_document opened;
	ssize_t count = shai_open(session, &id, 1, &opened, 1);
	int failed;

	if (count < 1) {
		snprintf(reason, reason_size, "%s",
		    count < 0 ? shai_reason() : "you may not read the document");
		return 403;
	}
	document->id = id;
	failed = document_read(document, opened.descriptor, &none, &none);
	close(opened.descriptor);
	if (failed == 0)
		return 200;
	snprintf(reason, reason_size, "the document cannot be read");
	return 502;
}

void
document_personalise(struct document *documents, size_t count)
{
	size_t front = 0; /* place of the next interesting one */

	for (size_t i = 0; i < count; i++) {
		struct document moved;

		if (!documents[i].interesting)
			continue;
		if (i > front) {
			moved = documents[i];
			memmove(documents + front + 1, documents + front,
			    (i - front) * sizeof *documents);
			documents[front] = moved;
		}
		front++;
	}
}
