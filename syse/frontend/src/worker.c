/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <http_parser.h>
#include <stdio.h>

#include "http.h"
#include "response.h"
#include "routes.h"

/*
 * The number of requests that a connection may send before a user logs in on it: a
 * client that keeps sending them must not occupy a worker.
 */
#define ANONYMOUS_REQUESTS_MAX 32

static void
send_refusal(struct worker *worker, struct http_connection *connection,
    const struct http_request *request, struct response *response)
{
	response_begin(response, worker->assets);
	response->close = true;
	response_error(response, request->refusal_status, "%s", request->refusal_reason);
	if (response_send(response, connection, false))
		http_linger(connection);
}

/* Answers one request. Returns whether the connection continues. */
static bool
answer(struct worker *worker, struct http_connection *connection,
    const struct http_request *request, struct response *response, bool last)
{
	response_begin(response, worker->assets);
	routes_handle(worker, request, response);
	if (!request->keep_alive || (last && worker->session.state != SHAI_SESSION_BOUND))
		response->close = true;
	if (!response_send(response, connection, request->method == HTTP_HEAD))
		return false;
	if (response->close)
		http_linger(connection);
	return !response->close;
}

void
worker_serve(struct worker *worker)
{
	/* Static, because untouched pages of a forked worker cost nothing. */
	static struct http_connection connection;
	static struct http_request request;
	static struct response response;
	const struct settings *settings = worker->settings;
	unsigned anonymous = 0;
	bool open = true;

	http_open(&connection, worker->session.connection, settings->request_timeout);
	while (open) {
		bool bound = worker->session.state == SHAI_SESSION_BOUND;
		struct http_timeouts timeouts = {
		    .idle = bound ? settings->idle_timeout : settings->login_timeout,
		    .request = bound ? settings->request_timeout : settings->login_timeout,
		};

		switch (http_read(&connection, &timeouts, &request)) {
		case HTTP_GONE:
			return;
		case HTTP_REFUSED:
			send_refusal(worker, &connection, &request, &response);
			return;
		case HTTP_COMPLETE:
			anonymous += bound ? 0 : 1;
			open = answer(worker, &connection, &request, &response,
			    anonymous >= ANONYMOUS_REQUESTS_MAX);
			break;
		}
	}
}

static void
begin_session(struct worker *worker)
{
	worker->principal[0] = '\0';
	worker->failed_logins = 0;
	worker->next_query = worker->session.first_query;
}

int
worker_run(struct worker *worker)
{
	do {
		if (shai_accept(&worker->session) != 0) {
			fprintf(stderr, "syse-frontend: accept a session: %s\n", shai_reason());
			return WORKER_FAILED;
		}
		begin_session(worker);
		worker_serve(worker);
		if (worker->keyvalue.borrowed)
			keyvalue_release(&worker->keyvalue);
		shai_reset(&worker->session);
	} while (shai_mode() == SHAI_MODE_BASELINE && !worker->settings->single_session);
	return WORKER_SERVED;
}
