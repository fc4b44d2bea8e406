/* SPDX-License-Identifier: BSD-2-Clause */
#include "response.h"

#include <http_parser.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "html.h"

#define NO_CONTENT 204

void
response_begin(struct response *response, const struct assets *assets)
{
	response->status = 200;
	response->html = false;
	response->close = false;
	response->type = "application/json";
	response->allow = NULL;
	response->assets = assets;
	text_init(&response->body, response->storage + RESPONSE_HEADER_MAX, RESPONSE_BODY_MAX);
}

void
response_error(struct response *response, int status, const char *format, ...)
{
	char reason[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof reason, format, arguments);
	va_end(arguments);
	response->status = status;
	response->body.length = 0;
	response->body.overflowed = false;
	if (response->html) {
		html_error(response, reason);
		return;
	}
	response->type = "application/json";
	text_string(&response->body, "{\"error\":");
	text_json_string(&response->body, reason);
	text_string(&response->body, "}\n");
}

/*
 * Writes an IMF-fixdate (RFC 9110, section 5.6.7). The process keeps the C locale, so
 * names are English.
 */
static void
append_date(struct text *header)
{
	char date[64];
	time_t now = time(NULL);
	struct tm parts;
	size_t size;

	gmtime_r(&now, &parts);
	size = strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
	text_append(header, date, size);
}

static void
append_fields(const struct response *response, struct text *header)
{
	append_date(header);
	if (response->status != NO_CONTENT) {
		text_string(header, "Content-Type: ");
		text_string(header, response->type);
		text_string(header, "\r\nContent-Length: ");
		text_number(header, response->body.length);
		text_string(header, "\r\n");
	}
	text_string(
	    header, response->close ? "Connection: close\r\n" : "Connection: keep-alive\r\n");
	if (response->allow != NULL) {
		text_string(header, "Allow: ");
		text_string(header, response->allow);
		text_string(header, "\r\n");
	}
	if (response->status == 401)
		text_string(header, "WWW-Authenticate: Shai-Session realm=\"Sys-E\"\r\n");
	text_string(header, "Cache-Control: no-store\r\n"
			    "X-Content-Type-Options: nosniff\r\n"
			    "X-Frame-Options: DENY\r\n"
			    "Referrer-Policy: no-referrer\r\n"
			    "Cross-Origin-Resource-Policy: same-origin\r\n"
			    "Content-Security-Policy: ");
	text_string(header, response->assets->content_policy);
	text_string(header, "\r\n\r\n");
}

bool
response_send(struct response *response, struct http_connection *connection, bool head)
{
	char storage[RESPONSE_HEADER_MAX];
	struct text header;
	char *start;

	if (response->body.overflowed)
		response_error(response, 500, "the answer exceeds %d bytes; ask for fewer results",
		    RESPONSE_BODY_MAX);
	text_init(&header, storage, sizeof storage);
	text_string(&header, "HTTP/1.1 ");
	text_number(&header, (uint64_t)response->status);
	text_string(&header, " ");
	text_string(&header, http_status_str((enum http_status)response->status));
	text_string(&header, "\r\n");
	append_fields(response, &header);
	if (header.overflowed)
		return false; /* only because of an unreasonably long content policy */
	/* Place it right before the body, so that one write sends both. */
	start = response->body.data - header.length;
	memcpy(start, header.data, header.length);
	return http_write(connection, start, header.length + (head ? 0 : response->body.length));
}
