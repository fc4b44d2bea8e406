/* SPDX-License-Identifier: BSD-2-Clause */
#include "html.h"

#include <string.h>

#include "names.h"

static void
begin_page(struct response *response, const char *title, size_t title_length)
{
	struct text *body = &response->body;

	response->type = "text/html; charset=utf-8";
	text_string(body,
	    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	    "<link rel=\"icon\" href=\"data:,\">\n<title>");
	text_html(body, title, title_length);
	text_string(body, " – Sys-E</title>\n<style>");
	/*
	 * Must be the page's style byte for byte: the content policy allows only
	 * that.
	 */
	text_append(body, response->assets->style, response->assets->style_length);
	text_string(body, "</style>\n</head>\n<body>\n<header class=\"bar\"><a class=\"name\" "
			  "href=\"/\">Sys-E</a>");
}

static void
end_page(struct response *response)
{
	text_string(&response->body, "</main>\n</body>\n</html>\n");
}

void
html_error(struct response *response, const char *reason)
{
	struct text *body = &response->body;

	begin_page(response, "Error", 5);
	text_string(body,
	    "</header>\n<main>\n<h1>That did not work</h1>\n<p class=\"problem\" role=\"alert\">");
	text_html_string(body, reason);
	text_string(body, "</p>\n<p><a href=\"/\">To the search page</a></p>\n");
	end_page(response);
}

void
html_marked(struct text *out, const struct terms *terms, const char *data, size_t size)
{
	size_t at = 0;
	struct span hit;

	while (terms_find(terms, TERMS_WHOLE, data, size, at, &hit)) {
		text_html(out, data + at, hit.start - at);
		text_string(out, "<mark>");
		text_html(out, data + hit.start, hit.length);
		text_string(out, "</mark>");
		at = hit.start + hit.length;
	}
	text_html(out, data + at, size - at);
}

/* Returns the CSS class for a visibility. Text from a document never becomes a class. */
static const char *
badge_class(const struct field *visibility)
{
	static const char *const KNOWN[] = {"public", "friends", "private"};

	for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
		if (strlen(KNOWN[i]) == visibility->length &&
		    memcmp(KNOWN[i], visibility->data, visibility->length) == 0)
			return KNOWN[i];
	return "";
}

static void
append_badge(struct text *body, const char *class, const char *label, const struct field *field)
{
	text_string(body, "<span class=\"badge ");
	text_string(body, class);
	text_string(body, "\">");
	text_string(body, label);
	text_html(body, field->data, field->length);
	text_string(body, "</span>");
}

static void
append_result(struct text *body, const struct answer *answer, const struct document *document)
{
	text_string(body, "<li class=\"result\"><h2>");
	html_marked(body, &answer->terms, document->title, document->title_length);
	text_string(body, "</h2><p class=\"badges\">");
	append_badge(body, badge_class(&document->visibility), "", &document->visibility);
	if (document->owner.length > 1)
		append_badge(body, "", "by ", &document->owner);
	text_string(body, "</p><p>");
	html_marked(body, &answer->terms, document->snippet, document->snippet_length);
	text_string(body, "</p></li>\n");
}

static void
append_form(struct text *body, const struct answer *answer)
{
	text_string(body,
	    "<form class=\"search\" action=\"/search\" role=\"search\"><label "
	    "for=\"q\">Search</label>"
	    "<input id=\"q\" name=\"q\" type=\"search\" required maxlength=\"1024\" value=\"");
	text_html(body, answer->query, answer->query_length);
	text_string(body, "\"><button>Search</button></form>\n");
}

static void
append_summary(struct text *body, const struct answer *answer)
{
	text_string(body, "<p class=\"summary\">");
	text_number(body, answer->count);
	text_string(body, answer->count == 1 ? " result" : " results");
	if (answer->withheld > 0) {
		text_string(body, "; <strong>");
		text_number(body, answer->withheld);
		text_string(body, " withheld</strong>, because your session may not open them");
	}
	text_string(body, "</p>\n");
	if (answer->note != NULL) {
		text_string(body, "<p class=\"note\">");
		text_html_string(body, answer->note);
		text_string(body, "</p>\n");
	}
}

void
html_results(struct response *response, const struct worker *worker, const struct answer *answer)
{
	struct text *body = &response->body;

	begin_page(response, answer->query, answer->query_length);
	text_string(body, "<span class=\"who\">");
	text_html_string(body, worker->principal);
	if (strcmp(worker->session.instance, worker->principal) != 0) {
		text_string(body, " · ");
		text_html_string(body, worker->session.instance);
	}
	text_string(body, " · mode ");
	text_string(body, name_of_mode(worker->session.mode));
	text_string(body, "</span></header>\n<main>\n");
	append_form(body, answer);
	append_summary(body, answer);
	text_string(body, "<ol class=\"results\">\n");
	for (size_t i = 0; i < answer->count; i++)
		append_result(body, answer, &answer->documents[i]);
	text_string(body, "</ol>\n<aside class=\"advertisement\" aria-label=\"Advertisement\">");
	text_html_string(body, answer->advertisement);
	text_string(body, "</aside>\n");
	end_page(response);
}
