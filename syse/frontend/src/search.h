/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One query: profile and history, search engine, documents, advertisement.
 */
#ifndef SYSE_SEARCH_H
#define SYSE_SEARCH_H

#include <stdint.h>

#include <jansson.h>

#include "document.h"
#include "worker.h"

#define SEARCH_TEXT_MAX 1024 /* bytes of a query's text */
#define SEARCH_LINE_MAX 4095 /* bytes of the line for the engine: one atomic write to a pipe */
#define SEARCH_COUNT_MAX 64  /* SHAI_BATCH_MAX */

struct answer {
	const char *query; /* borrowed from the caller of search_run */
	size_t query_length;
	struct terms terms; /* the query's words */
	struct document documents[SEARCH_COUNT_MAX];
	size_t count;
	uint32_t withheld;         /* number of results that this session may not open */
	const char *advertisement; /* borrowed from the assets */
	const char *note;          /* a note for the user, or NULL */
	char reason[512];          /* if search_run fails: what, why, what to do */
};

/*
 * Runs a query of the session's user. Returns an HTTP status: 200 with *answer filled
 * in; 503 without a usable key-value store; 502 if the engine is gone or its answer
 * is malformed (the session is then over); 504 if it does not answer in time.
 */
int search_run(
    struct worker *worker, const char *text, size_t size, uint32_t count, struct answer *answer);

/*
 * Writes the line for the engine, with its line break, to line, which has room for
 * SEARCH_LINE_MAX bytes. Leaves out friends that do not fit, and returns whether all
 * of them did.
 */
bool search_line(struct text *line, const struct worker *worker, uint32_t number,
    const json_t *friends, const char *text, size_t size, uint32_t count);

#endif
