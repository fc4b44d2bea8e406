/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Turns what a user has searched for and opened into a few topics.
 */
#ifndef SYSE_INTERESTS_H
#define SYSE_INTERESTS_H

#include "topics.h"
#include "worker.h"

struct interests {
	size_t count;
	const char
	    *topic[TOPICS_CHOSEN_MAX]; /* the most frequent first; borrowed from the assets */
	char reason[512];              /* if interests_update fails: what, why */
};

/*
 * Reads both histories of the session's user in this region, and writes the topics that are most
 * frequent in them to the user's tuple, in the place of those that were there.
 *
 * Returns the HTTP status: 200 with the topics; 403 if they may not be written; 503 without a
 * usable key-value store.
 */
int interests_update(struct worker *worker, struct interests *interests);

#endif
