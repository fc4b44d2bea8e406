/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Answers as HTML pages, for browsers without scripts and for links.
 */
#ifndef SYSE_HTML_H
#define SYSE_HTML_H

#include "response.h"
#include "search.h"

/* Replaces the response's body by a page that describes the error. */
void html_error(struct response *response, const char *reason);

/* Makes the response a page of results for the session's user. */
void html_results(
    struct response *response, const struct worker *worker, const struct answer *answer);

/* Appends text with the terms' hits inside <mark>, and everything else escaped. */
void html_marked(struct text *out, const struct terms *terms, const char *data, size_t size);

#endif
