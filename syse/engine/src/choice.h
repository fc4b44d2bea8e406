/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Picks the results of a query: documents at random, each at most once.
 */
#ifndef SYSE_ENGINE_CHOICE_H
#define SYSE_ENGINE_CHOICE_H

#include "documents.h"
#include "request.h"

/* Random numbers of one thread. */
struct chance {
	unsigned short state[3];
};

/* Seeds a thread's random numbers. Returns 0, or -1 with errno. */
int chance_seed(struct chance *chance);

/*
 * Picks results among what the user may read as the documents' headers say: public ones,
 * the user's own, and those that friends show. Writes as many as are wanted to out, or all
 * if there are fewer, and returns how many.
 */
size_t choose(const struct documents *documents, const struct request *request,
    struct chance *chance, struct document *out);

/* Picks among all documents, as an engine does that ignores who may read what. */
size_t choose_any(const struct documents *documents, const struct request *request,
    struct chance *chance, struct document *out);

/* Keeps this thread's processor busy for about so many cycles. */
void keep_busy(uint64_t cycles);

#endif
