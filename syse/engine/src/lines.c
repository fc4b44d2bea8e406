/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Reads more, behind what is there. Returns whether there is more. */
static bool
fill(struct lines *lines)
{
	ssize_t count;

	memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = 0;
	do {
		errno = 0;
		count = read(
		    lines->pipe, lines->buffer + lines->end, sizeof lines->buffer - lines->end);
	} while (count < 0 && errno == EINTR);
	if (count <= 0)
		return false;
	lines->end += (size_t)count;
	return true;
}

enum lines_result
lines_next(struct lines *lines, const char **line, size_t *length)
{
	bool too_long = false;

	for (;;) {
		const char *start = lines->buffer + lines->begin;
		size_t there = lines->end - lines->begin;
		const char *over = memchr(start, '\n', there);

		if (over != NULL) {
			*line = start;
			*length = (size_t)(over - start);
			lines->begin += *length + 1;
			return too_long || *length >= REQUEST_LINE_MAX ? LINES_TOO_LONG
								       : LINES_LINE;
		}
		if (there >= REQUEST_LINE_MAX) {
			too_long = true;
			lines->begin = lines->end;
		}
		if (!fill(lines))
			return LINES_END;
	}
}
