/* SPDX-License-Identifier: BSD-2-Clause
 *
 * HTTP/1.1 on one connection: reads whole requests, one after the other, also
 * when they arrive pipelined; bounds their size and how long they may take.
 */
#ifndef SYSE_HTTP_H
#define SYSE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEADER_MAX 16384 /* request line and header together, in bytes */
#define HTTP_BODY_MAX 65536
#define HTTP_ACCEPT_MAX 512 /* what exceeds it is ignored */

struct http_connection {
	int descriptor;    /* borrowed; made non-blocking */
	int write_timeout; /* milliseconds until a client that does not read is given up */
	size_t start, end; /* what is read and not yet parsed */
	char input[HTTP_HEADER_MAX];
};

struct http_timeouts {
	int idle;    /* milliseconds until a request's first byte */
	int request; /* from then until its last */
};

struct http_request {
	unsigned method; /* enum http_method of http_parser.h */
	size_t target_length;
	size_t accept_length;
	size_t body_length;
	bool keep_alive;
	bool cross_site; /* a browser sends it on behalf of another site's page */
	/* When http_read refuses: what to answer before closing. */
	int refusal_status;
	const char *refusal_reason;
	char target[HTTP_HEADER_MAX];
	char accept[HTTP_ACCEPT_MAX];
	char body[HTTP_BODY_MAX];
};

enum http_outcome {
	HTTP_COMPLETE, /* *request is a whole request */
	HTTP_REFUSED,  /* answer refusal_status with refusal_reason, then close */
	HTTP_GONE      /* the client has closed, failed, or sent nothing in time: close */
};

/* Once per process, before the first http_read. */
void http_prepare(void);

void http_open(struct http_connection *connection, int descriptor, int write_timeout);

enum http_outcome http_read(struct http_connection *connection,
    const struct http_timeouts *timeouts, struct http_request *request);

/*
 * Writes all of data, with one write(2) unless the kernel takes less. Returns
 * whether the client took it in time.
 */
bool http_write(struct http_connection *connection, const char *data, size_t size);

/*
 * Says that nothing more will be sent, and discards what still arrives, for a
 * bounded time and amount: closing with unread data would make the kernel
 * withdraw the answer (RFC 9112, section 9.6). The descriptor stays open.
 */
void http_linger(struct http_connection *connection);

/* Whether an Accept field prefers text/html to application/json (RFC 9110, section 12.5.1). */
bool http_prefers_html(const char *accept, size_t length);

#endif
