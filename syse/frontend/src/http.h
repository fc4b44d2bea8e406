/* SPDX-License-Identifier: BSD-2-Clause
 *
 * HTTP/1.1 on one connection: reads complete requests, one after the other, even if
 * they are pipelined. Limits their size and the time in which they must arrive.
 */
#ifndef SYSE_HTTP_H
#define SYSE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_HEADER_MAX 16384 /* request line and header together, in bytes */
#define HTTP_BODY_MAX 4096    /* logins have some 200 */
#define HTTP_ACCEPT_MAX 512   /* the rest is ignored */

struct http_connection {
	int descriptor;    /* borrowed; made non-blocking */
	int write_timeout; /* milliseconds; the limit for a client that does not read */
	size_t start, end; /* the bytes that are read but not yet parsed */
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
	bool cross_site; /* a browser sent it on behalf of another site's page */
	/* If http_read refuses the request: the answer to send before closing. */
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

/* Call once per process, before the first http_read. */
void http_prepare(void);

void http_open(struct http_connection *connection, int descriptor, int write_timeout);

enum http_outcome http_read(struct http_connection *connection,
    const struct http_timeouts *timeouts, struct http_request *request);

/*
 * Writes all of data, with one write(2) unless the kernel takes less. Returns whether
 * the client took it in time.
 */
bool http_write(struct http_connection *connection, const char *data, size_t size);

/*
 * Shuts the connection down for sending, and discards data that still arrives, up to
 * a limit of time and amount: if the connection was closed with unread data, the
 * kernel would discard the answer (RFC 9112, section 9.6). The descriptor stays open.
 */
void http_linger(struct http_connection *connection);

/*
 * Reports whether an Accept field prefers text/html to application/json (RFC 9110,
 * section 12.5.1).
 */
bool http_prefers_html(const char *accept, size_t length);

#endif
