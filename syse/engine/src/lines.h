/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads lines from a pipe, in a buffer that is used again.
 */
#ifndef SYSE_ENGINE_LINES_H
#define SYSE_ENGINE_LINES_H

#include <stddef.h>

#include "request.h"

struct lines {
	int pipe;
	size_t begin, end; /* what has been read and not returned */
	char buffer[2 * REQUEST_LINE_MAX];
};

enum lines_result {
	LINES_END = 0, /* the pipe has ended, or cannot be read: errno, or 0 */
	LINES_LINE,
	LINES_TOO_LONG /* a line that was too long has been skipped */
};

/*
 * Waits for a line. *line and *length are it, without the line feed, until the next call.
 * Text after the last line feed is no line, because its writer has died.
 */
enum lines_result lines_next(struct lines *lines, const char **line, size_t *length);

#endif
