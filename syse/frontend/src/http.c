/* SPDX-License-Identifier: BSD-2-Clause */
#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <http_parser.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINGER_MILLISECONDS 500
#define LINGER_BYTES (1024 * 1024)
#define FIELD_NAME_MAX 32 /* no header that is used has a longer name */

/* The state of the parser's callbacks while one request is read. */
struct reading {
	struct http_request *request;
	char field[FIELD_NAME_MAX];
	size_t field_length;
	bool in_value;
	char site[16]; /* Sec-Fetch-Site */
	size_t site_length;
	char expect[16];
	size_t expect_length;
	bool wants_continue;
	bool complete;
};

static int64_t
milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until events happen on the descriptor. Returns false at the deadline. */
static bool
wait_until(int descriptor, short events, int64_t deadline)
{
	struct pollfd wanted = {.fd = descriptor, .events = events};

	for (;;) {
		int64_t left = deadline - milliseconds_now();
		int ready;

		if (left <= 0)
			return false;
		ready = poll(&wanted, 1, left > INT_MAX ? INT_MAX : (int)left);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
	}
}

static int
refuse(struct http_request *request, int status, const char *reason)
{
	request->refusal_status = status;
	request->refusal_reason = reason;
	return -1;
}

/* Appends as much as fits. Returns whether everything did. */
static bool
append(char *to, size_t capacity, size_t *length, const char *data, size_t size)
{
	size_t taken = size < capacity - *length ? size : capacity - *length;

	memcpy(to + *length, data, taken);
	*length += taken;
	return taken == size;
}

static int
on_url(http_parser *parser, const char *data, size_t size)
{
	struct http_request *request = ((struct reading *)parser->data)->request;

	if (!append(request->target, sizeof request->target, &request->target_length, data, size))
		return refuse(request, 414, "the request's target is too long");
	return 0;
}

static int
on_field(http_parser *parser, const char *data, size_t size)
{
	struct reading *reading = parser->data;

	if (reading->in_value)
		reading->field_length = 0;
	reading->in_value = false;
	/* One byte beyond the capacity marks a name that is too long to be used. */
	if (!append(reading->field, sizeof reading->field, &reading->field_length, data, size))
		reading->field_length = sizeof reading->field;
	return 0;
}

static bool
field_is(const struct reading *reading, const char *name)
{
	return reading->field_length == strlen(name) &&
	       strncasecmp(reading->field, name, strlen(name)) == 0;
}

static int
on_value(http_parser *parser, const char *data, size_t size)
{
	struct reading *reading = parser->data;
	struct http_request *request = reading->request;

	if (field_is(reading, "Accept")) {
		if (!reading->in_value && request->accept_length > 0)
			append(request->accept, sizeof request->accept, &request->accept_length,
			    ",", 1);
		append(
		    request->accept, sizeof request->accept, &request->accept_length, data, size);
	} else if (field_is(reading, "Sec-Fetch-Site")) {
		append(reading->site, sizeof reading->site, &reading->site_length, data, size);
	} else if (field_is(reading, "Expect")) {
		append(
		    reading->expect, sizeof reading->expect, &reading->expect_length, data, size);
	}
	reading->in_value = true;
	return 0;
}

/* Reports whether the request may be another site's. One that names no site is no browser's; a
   header that is there twice is none of those that a browser sends. */
static bool
is_cross_site(const struct reading *reading)
{
	static const char *const OWN[] = {"", "none", "same-origin", "same-site"};

	for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++)
		if (reading->site_length == strlen(OWN[i]) &&
		    memcmp(reading->site, OWN[i], reading->site_length) == 0)
			return false;
	return true;
}

static int
on_headers_complete(http_parser *parser)
{
	static const char CONTINUE[] = "100-continue";
	struct reading *reading = parser->data;
	struct http_request *request = reading->request;

	parser->upgrade =
	    0; /* no other protocol is supported; RFC 9110 allows a server to ignore an upgrade */
	request->method = parser->method;
	request->cross_site = is_cross_site(reading);
	if (parser->http_major != 1)
		return refuse(request, 505, "only HTTP/1.1 is supported");
	if (parser->method == HTTP_CONNECT)
		return refuse(request, 405, "this server is not a proxy");
	if (parser->content_length != ULLONG_MAX && parser->content_length > HTTP_BODY_MAX)
		return refuse(request, 413, "the request's body exceeds 4096 bytes");
	reading->wants_continue = reading->expect_length == sizeof CONTINUE - 1 &&
				  strncasecmp(reading->expect, CONTINUE, sizeof CONTINUE - 1) == 0;
	return 0;
}

static int
on_body(http_parser *parser, const char *data, size_t size)
{
	struct http_request *request = ((struct reading *)parser->data)->request;

	if (!append(request->body, sizeof request->body, &request->body_length, data, size))
		return refuse(request, 413, "the request's body exceeds 4096 bytes");
	return 0;
}

static int
on_message_complete(http_parser *parser)
{
	struct reading *reading = parser->data;

	reading->complete = true;
	reading->request->keep_alive = http_should_keep_alive(parser) != 0;
	http_parser_pause(parser, 1); /* the following bytes belong to the next request */
	return 0;
}

void
http_prepare(void)
{
	http_parser_set_max_header_size(HTTP_HEADER_MAX);
}

void
http_open(struct http_connection *connection, int descriptor, int write_timeout)
{
	int flags = fcntl(descriptor, F_GETFL);

	connection->descriptor = descriptor;
	connection->write_timeout = write_timeout;
	connection->start = connection->end = 0;
	if (flags >= 0)
		fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

/* Parses the input. Returns false if the request is refused. */
static bool
parse_input(struct http_connection *connection, http_parser *parser, struct reading *reading)
{
	static const http_parser_settings CALLBACKS = {
	    .on_url = on_url,
	    .on_header_field = on_field,
	    .on_header_value = on_value,
	    .on_headers_complete = on_headers_complete,
	    .on_body = on_body,
	    .on_message_complete = on_message_complete,
	};
	struct http_request *request = reading->request;
	size_t size = connection->end - connection->start;

	connection->start +=
	    http_parser_execute(parser, &CALLBACKS, connection->input + connection->start, size);
	if (reading->complete)
		return true;
	switch (HTTP_PARSER_ERRNO(parser)) {
	case HPE_OK:
		return true;
	case HPE_HEADER_OVERFLOW:
		refuse(request, 431, "the request's header exceeds 16384 bytes");
		return false;
	default:
		if (request->refusal_status == 0)
			refuse(request, 400, http_errno_description(HTTP_PARSER_ERRNO(parser)));
		return false;
	}
}

/*
 * Reads the data that has arrived, and waits for some until the deadline. Returns
 * HTTP_COMPLETE if there is data, which need not be a whole request.
 */
static enum http_outcome
read_more(struct http_connection *connection, int64_t deadline)
{
	for (;;) {
		ssize_t got =
		    read(connection->descriptor, connection->input, sizeof connection->input);

		if (got > 0) {
			connection->start = 0;
			connection->end = (size_t)got;
			return HTTP_COMPLETE;
		}
		if (got == 0)
			return HTTP_GONE;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return HTTP_GONE;
		if (!wait_until(connection->descriptor, POLLIN, deadline))
			return HTTP_REFUSED;
	}
}

enum http_outcome
http_read(struct http_connection *connection, const struct http_timeouts *timeouts,
    struct http_request *request)
{
	static const char CONTINUE[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct reading reading = {.request = request};
	int64_t begun = milliseconds_now();
	int64_t deadline = begun + timeouts->idle;
	bool first = true;
	http_parser parser;

	request->target_length = request->accept_length = request->body_length = 0;
	request->refusal_status = 0;
	http_parser_init(&parser, HTTP_REQUEST);
	parser.data = &reading;
	for (;;) {
		if (connection->start == connection->end) {
			enum http_outcome outcome = read_more(connection, deadline);

			if (outcome == HTTP_REFUSED && !first)
				refuse(
				    request, 408, "the request did not arrive completely in time");
			else if (outcome == HTTP_REFUSED)
				outcome = HTTP_GONE; /* idle: there is no request to answer */
			if (outcome != HTTP_COMPLETE)
				return outcome;
		}
		if (first)
			deadline = milliseconds_now() + timeouts->request;
		first = false;
		if (!parse_input(connection, &parser, &reading))
			return HTTP_REFUSED;
		if (reading.complete)
			return HTTP_COMPLETE;
		if (reading.wants_continue &&
		    !http_write(connection, CONTINUE, sizeof CONTINUE - 1))
			return HTTP_GONE;
		reading.wants_continue = false;
	}
}

bool
http_write(struct http_connection *connection, const char *data, size_t size)
{
	int64_t deadline = milliseconds_now() + connection->write_timeout;

	while (size > 0) {
		ssize_t taken = write(connection->descriptor, data, size);

		if (taken >= 0) {
			data += taken;
			size -= (size_t)taken;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if (!wait_until(connection->descriptor, POLLOUT, deadline))
				return false;
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}

void
http_linger(struct http_connection *connection)
{
	int64_t deadline = milliseconds_now() + LINGER_MILLISECONDS;
	size_t discarded = 0;

	shutdown(connection->descriptor, SHUT_WR);
	while (discarded < LINGER_BYTES && read_more(connection, deadline) == HTTP_COMPLETE)
		discarded += connection->end;
	connection->start = connection->end = 0;
}

/* Returns the weight in "text/html;q=0.8" in thousandths, 1000 if there is none. */
static int
weight(const char *parameters, size_t length)
{
	int value = 0, unit = 1000;
	size_t at = 0;

	while (at + 1 < length && !((parameters[at] | 32) == 'q' && parameters[at + 1] == '='))
		at++;
	if (at + 1 >= length)
		return 1000;
	for (at += 2; at < length && unit > 0; at++) {
		if (parameters[at] >= '0' && parameters[at] <= '9') {
			value += (parameters[at] - '0') * unit;
			unit /= 10;
		} else if (parameters[at] != '.') {
			break;
		}
	}
	return value > 1000 ? 1000 : value;
}

bool
http_prefers_html(const char *accept, size_t length)
{
	static const char HTML[] = "text/html", JSON[] = "application/json";
	int html = 0, json = 0;

	for (size_t at = 0; at < length;) {
		size_t end = at;
		const char *range;
		size_t size;

		while (end < length && accept[end] != ',')
			end++;
		while (at < end && (accept[at] == ' ' || accept[at] == '\t'))
			at++;
		range = accept + at;
		size = end - at;
		if (size >= sizeof HTML - 1 && strncasecmp(range, HTML, sizeof HTML - 1) == 0)
			html = weight(range + sizeof HTML - 1, size - (sizeof HTML - 1));
		if (size >= sizeof JSON - 1 && strncasecmp(range, JSON, sizeof JSON - 1) == 0)
			json = weight(range + sizeof JSON - 1, size - (sizeof JSON - 1));
		at = end + 1;
	}
	return html > json;
}
