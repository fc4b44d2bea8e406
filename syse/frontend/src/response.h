/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One answer, composed in storage of a fixed size and sent with one write if
 * possible: in mode dynamic every write asks the monitor.
 */
#ifndef SYSE_RESPONSE_H
#define SYSE_RESPONSE_H

#include <stdbool.h>

#include "assets.h"
#include "http.h"
#include "text.h"

#define RESPONSE_HEADER_MAX 1024
/*
 * 64 results of at most some 600 bytes, of which a third is escaped into 6 bytes each, and
 * the page. Not more, since all of it is restored between sessions.
 */
#define RESPONSE_BODY_MAX (128 * 1024)

struct response {
	int status;
	bool html;                   /* the client prefers HTML; errors use it too */
	bool close;                  /* the connection ends with this answer */
	const char *type;            /* Content-Type */
	const char *allow;           /* methods, for status 405; otherwise NULL */
	const struct assets *assets; /* for the style and the content policy */
	struct text body;
	char storage[RESPONSE_HEADER_MAX + RESPONSE_BODY_MAX];
};

/* Begins an answer: status 200, JSON, empty. */
void response_begin(struct response *response, const struct assets *assets);

/* Turns the answer into an error of this status, in JSON or HTML: what, why, what to do. */
void response_error(struct response *response, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Sends the answer, without its body if head is true. An answer that did not fit its
 * storage is replaced by an error. Returns whether the client took it.
 */
bool response_send(struct response *response, struct http_connection *connection, bool head);

#endif
