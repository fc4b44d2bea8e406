/* SPDX-License-Identifier: BSD-2-Clause */
#include "routes.h"

#include <http_parser.h>
#include <stdio.h>
#include <string.h>

#include "click.h"
#include "html.h"
#include "interests.h"
#include "login.h"
#include "names.h"
#include "parameters.h"
#include "policy.h"
#include "search.h"
#include "support.h"

/* A request and the parts of its target. */
struct call {
	struct worker *worker;
	const struct http_request *request;
	struct response *response;
	const char *path, *query;
	size_t path_length, query_length;
};

static void
get_page(struct call *call)
{
	call->response->type = "text/html; charset=utf-8";
	text_append(
	    &call->response->body, call->worker->assets->page, call->worker->assets->page_length);
}

static void
get_health(struct call *call)
{
	text_string(&call->response->body, "{\"status\":\"ok\"}\n");
}

static void
get_session(struct call *call)
{
	login_describe(call->worker, call->response);
}

static void
post_session(struct call *call)
{
	login_attempt(call->worker, call->request, call->response);
}

static void
delete_session(struct call *call)
{
	call->response->status = 204;
	call->response->close = true;
}

static void
append_document(struct text *body, const struct document *document)
{
	text_string(body, "{\"id\":");
	text_number(body, document->id);
	text_string(body, ",\"title\":");
	text_json(body, document->title, document->title_length);
	text_string(body, ",\"owner\":");
	text_json(body, document->owner.data, document->owner.length);
	text_string(body, ",\"visibility\":");
	text_json(body, document->visibility.data, document->visibility.length);
	text_string(body, ",\"snippet\":");
	text_json(body, document->snippet, document->snippet_length);
	text_string(body, "}");
}

static void
json_results(struct text *body, const struct worker *worker, const struct answer *answer)
{
	text_string(body, "{\"query\":");
	text_json(body, answer->query, answer->query_length);
	text_string(body, ",\"user\":");
	text_json_string(body, worker->principal);
	text_string(body, ",\"results\":[");
	for (size_t i = 0; i < answer->count; i++) {
		if (i > 0)
			text_string(body, ",");
		append_document(body, &answer->documents[i]);
	}
	text_string(body, "],\"withheld\":");
	text_number(body, answer->withheld);
	text_string(body, ",\"advertisement\":");
	text_json_string(body, answer->advertisement);
	if (answer->note != NULL) {
		text_string(body, ",\"note\":");
		text_json_string(body, answer->note);
	}
	text_string(body, "}\n");
}

/* Reads q and n. If one is wrong, answers with the error and returns false. */
static bool
search_parameters(struct call *call, char *text, size_t *length, uint32_t *count)
{
	*length = 0;
	switch (parameter_text(
	    call->query, call->query_length, "q", text, SEARCH_TEXT_MAX + 1, length)) {
	case PARAMETER_MALFORMED:
		response_error(call->response, 400,
		    "q is not percent-encoded UTF-8 text without control characters");
		return false;
	case PARAMETER_TOO_LONG:
		response_error(call->response, 400, "q exceeds %d bytes", SEARCH_TEXT_MAX);
		return false;
	case PARAMETER_MISSING:
	case PARAMETER_FOUND:
		break;
	}
	if (*length == 0) {
		response_error(call->response, 400,
		    "q is missing; write the words to search for, as in /search?q=words");
		return false;
	}
	switch (parameter_number(call->query, call->query_length, "n", count)) {
	case PARAMETER_FOUND:
	case PARAMETER_MISSING:
		if (*count >= 1 && *count <= SEARCH_COUNT_MAX)
			return true;
		break;
	case PARAMETER_MALFORMED:
	case PARAMETER_TOO_LONG:
		break;
	}
	response_error(call->response, 400, "n is not a number from 1 to %d", SEARCH_COUNT_MAX);
	return false;
}

/* Answers that a request of the session's user has failed. */
static void
refuse(struct call *call, int status, const char *reason)
{
	response_error(call->response, status, "%s", reason);
	call->response->close = call->worker->session.state != SHAI_SESSION_BOUND;
}

/* Answers with a document, or says why not. */
static void
show_document(struct call *call, int status, const struct document *document, const char *reason)
{
	if (status != 200) {
		refuse(call, status, reason);
		return;
	}
	append_document(&call->response->body, document);
	text_string(&call->response->body, "\n");
}

static void
get_search(struct call *call)
{
	static char text[SEARCH_TEXT_MAX + 1];
	static struct answer answer;
	uint32_t count = call->worker->settings->results;
	size_t length;
	int status;

	if (!search_parameters(call, text, &length, &count))
		return;
	status = search_run(call->worker, text, length, count, &answer);
	if (status != 200) {
		refuse(call, status, answer.reason);
	} else if (call->response->html) {
		html_results(call->response, call->worker, &answer);
	} else {
		json_results(&call->response->body, call->worker, &answer);
	}
}

/* GET /document?id=N&name=PATH, which the support serves. */
static void
get_document(struct call *call)
{
	static struct document document;
	char name[SUPPORT_NAME_MAX + 1], reason[SUPPORT_REASON_MAX];
	uint32_t id = 0;
	size_t length;
	int status;

	if (parameter_text(call->query, call->query_length, "name", name, sizeof name, &length) !=
		PARAMETER_FOUND ||
	    length == 0 ||
	    parameter_number(call->query, call->query_length, "id", &id) != PARAMETER_FOUND) {
		response_error(call->response, 400,
		    "write the document's number and its name, as in "
		    "/document?id=17&name=/corpus/private/alice/1.txt");
		return;
	}
	status = support_read(call->worker, name, id, &document, reason);
	show_document(call, status, &document, reason);
}

/* Reads id. If it is missing or wrong, answers with the error and returns false. */
static bool
document_number(struct call *call, uint32_t *id)
{
	if (parameter_number(call->query, call->query_length, "id", id) == PARAMETER_FOUND)
		return true;
	response_error(call->response, 400, "write the document's number, as in %.*s?id=17",
	    (int)call->path_length, call->path);
	return false;
}

/* POST /click?id=N: a result was opened. */
static void
post_click(struct call *call)
{
	static struct document document;
	char reason[512];
	uint32_t id = 0;
	int status;

	if (!document_number(call, &id))
		return;
	status = click_record(call->worker, id, &document, reason, sizeof reason);
	show_document(call, status, &document, reason);
}

static void
get_policy(struct call *call)
{
	uint32_t id = 0;

	if (document_number(call, &id))
		policy_offer(call->worker, id, call->response);
}

static void
post_policy(struct call *call)
{
	uint32_t id = 0;

	if (document_number(call, &id))
		policy_choose(call->worker, id, call->request, call->response);
}

static void
post_topics(struct call *call)
{
	struct text *body = &call->response->body;
	static struct interests interests;
	int status = interests_update(call->worker, &interests);

	if (status != 200) {
		refuse(call, status, interests.reason);
		return;
	}
	text_string(body, "{\"topics\":[");
	for (size_t i = 0; i < interests.count; i++) {
		if (i > 0)
			text_string(body, ",");
		text_json_string(body, interests.topic[i]);
	}
	text_string(body, "]}\n");
}

enum permission {
	ANYBODY,   /* uses no user's data */
	SAME_SITE, /* anybody, but not on behalf of another site's page */
	USER       /* the session's user, and not on behalf of another site's page */
};

/* A request that is not listed is refused. */
static const struct route {
	const char *path;
	unsigned method;
	enum permission permission;
	unsigned services; /* that have it */
	void (*handle)(struct call *call);
} ROUTES[] = {
    {"/", HTTP_GET, ANYBODY, SERVE_SEARCH, get_page},
    {"/healthz", HTTP_GET, ANYBODY, SERVE_ALL, get_health},
    {"/session", HTTP_GET, SAME_SITE, SERVE_ALL, get_session},
    {"/session", HTTP_POST, SAME_SITE, SERVE_ALL, post_session},
    {"/session", HTTP_DELETE, SAME_SITE, SERVE_ALL, delete_session},
    {"/search", HTTP_GET, USER, SERVE_SEARCH, get_search},
    {"/click", HTTP_POST, USER, SERVE_SEARCH, post_click},
    {"/policy", HTTP_GET, USER, SERVE_SEARCH, get_policy},
    {"/policy", HTTP_POST, USER, SERVE_SEARCH, post_policy},
    {"/topics", HTTP_POST, USER, SERVE_INTERESTS, post_topics},
    {"/document", HTTP_GET, USER, SERVE_SUPPORT, get_document},
};
#define ROUTE_COUNT (sizeof ROUTES / sizeof ROUTES[0])

static bool
permitted(const struct call *call, enum permission permission)
{
	if (permission != ANYBODY && call->request->cross_site) {
		response_error(call->response, 403,
		    "another site's page made this request; open Sys-E itself");
		return false;
	}
	if (permission == USER && call->worker->session.state != SHAI_SESSION_BOUND) {
		response_error(call->response, 401,
		    "nobody is logged in on this connection: sign the nonce of GET /session and "
		    "send it to "
		    "POST /session");
		return false;
	}
	return true;
}

/* Splits the target. Returns false if it is neither a path nor an absolute URL. */
static bool
split_target(struct call *call)
{
	struct http_parser_url url;

	http_parser_url_init(&url);
	if (http_parser_parse_url(call->request->target, call->request->target_length, 0, &url) !=
		0 ||
	    !(url.field_set & 1 << UF_PATH))
		return false;
	call->path = call->request->target + url.field_data[UF_PATH].off;
	call->path_length = url.field_data[UF_PATH].len;
	call->query = call->request->target + url.field_data[UF_QUERY].off;
	call->query_length = url.field_set & 1 << UF_QUERY ? url.field_data[UF_QUERY].len : 0;
	return true;
}

void
routes_handle(struct worker *worker, const struct http_request *request, struct response *response)
{
	unsigned method = request->method == HTTP_HEAD ? HTTP_GET : request->method;
	struct call call = {.worker = worker, .request = request, .response = response};
	unsigned offered = 0; /* methods of this path, as bits */

	response->html = http_prefers_html(request->accept, request->accept_length);
	if (!split_target(&call)) {
		response_error(response, 400, "the request's target is not a path");
		return;
	}
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		const struct route *route = &ROUTES[i];

		if (!(route->services & (unsigned)worker->settings->service) ||
		    strlen(route->path) != call.path_length ||
		    memcmp(route->path, call.path, call.path_length) != 0)
			continue;
		offered |= 1u << route->method;
		if (route->method != method)
			continue;
		if (permitted(&call, route->permission))
			route->handle(&call);
		return;
	}
	if (offered == 0) {
		response_error(response, 404, "there is no such page; the search page is /");
		return;
	}
	response->allow = offered == 1u << HTTP_GET     ? "GET, HEAD"
			  : offered == 1u << HTTP_POST  ? "POST"
			  : offered & 1u << HTTP_DELETE ? "GET, HEAD, POST, DELETE"
							: "GET, HEAD, POST";
	response_error(response, 405, "this address does not support the method %s",
	    http_method_str((enum http_method)request->method));
}
