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
	const struct channel_paths *paths;
	unsigned slot;
	int results;
	int checked; /* -1 until it is needed */
};

/* Opens a slot's channel. Returns 0, or -1 with errno. */
int answers_open(struct answers *answers, const struct channel_paths *paths, unsigned slot);

/* Answers a query. Returns 0, or -1 with errno. */
int answers_send(struct answers *answers, const struct request *request,
    const struct document *chosen, size_t count);

/* Writes text where conduits belong, as a broken engine may. Returns 0, or -1 with errno. */
int answers_send_text(
    struct answers *answers, const struct request *request, const char *text, size_t size);

#endif
