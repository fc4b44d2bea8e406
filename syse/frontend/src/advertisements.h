/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Advertisements, each of which is about one topic.
 */
#ifndef SYSE_ADVERTISEMENTS_H
#define SYSE_ADVERTISEMENTS_H

#include <stdbool.h>
#include <stddef.h>

struct advertisement {
	const char *topic, *text;
};

/* Immutable after loading. */
struct advertisements {
	size_t count; /* at least 1 */
	struct advertisement *list;
	char *content; /* of the file; the list points into it */
};

/*
 * Loads a file of lines "topic: text". Empty lines and lines that begin with "#" are skipped.
 * Returns false with the reason: the file, what is wrong with it, and what is expected.
 */
bool advertisements_load(
    struct advertisements *advertisements, const char *path, char *reason, size_t reason_size);

void advertisements_release(struct advertisements *advertisements);

/*
 * Returns the advertisement for a query of a user, among those about a topic that content says
 * (see topics.h), or among all if there is none. It is the same one for the same text and topics.
 */
const char *advertisements_choose(const struct advertisements *advertisements, const char *query,
    size_t query_length, const char *content, size_t size);

#endif
