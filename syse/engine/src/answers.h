/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The answers to a slot's queries, on the slot's descriptor channel or its twin whose
 * every write asks the monitor.
 */
#ifndef SYSE_ENGINE_ANSWERS_H
#define SYSE_ENGINE_ANSWERS_H

#include "documents.h"
#include "request.h"

/* Paths of channels, without "/" and the slot. */
struct channel_paths {
	const char *results;
	const char *checked;
};

struct answers {
	const struct documents *documents;
	const struct channel_paths *paths;
	unsigned slot;
	int results;
	int checked; /* -1 until it is needed */
	bool passes; /* open descriptors instead of numbers */
};

/* Opens a slot's channel. Returns 0, or -1 with errno. */
int answers_open(struct answers *answers, const struct documents *documents,
    const struct channel_paths *paths, unsigned slot);

/*
 * Answers a query. Returns 0, or -1 with errno. Where the channel carries numbers, the
 * answer is one record with the query's number. Where it carries descriptors, the answer is
 * one transfer of the documents that could be opened, and none if there are none.
 */
int answers_send(struct answers *answers, const struct request *request,
    const struct document *chosen, size_t count);

/* Writes text where conduits belong, as a broken engine may. Returns 0, or -1 with errno. */
int answers_send_text(
    struct answers *answers, const struct request *request, const char *text, size_t size);

#endif
