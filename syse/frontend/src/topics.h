/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What texts are about: topics, which are found by words that belong to them.
 */
#ifndef SYSE_TOPICS_H
#define SYSE_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

#define TOPICS_MAX 32       /* topics of a file */
#define TOPICS_NAME_MAX 31  /* bytes of a topic's name, or of a word */
#define TOPICS_CHOSEN_MAX 3 /* what is said about a user at most */

struct topic_word {
	const char *word; /* lower case */
	size_t topic;     /* its number */
};

/* Topics and their words. Immutable after loading. */
struct topics {
	size_t count;
	const char *name[TOPICS_MAX];
	size_t word_count;
	struct topic_word *words; /* sorted; a word can have several topics */
	char *content;            /* of the file; names and words point into it */
};

/* How often each topic was found in some texts. */
struct topic_counts {
	unsigned count[TOPICS_MAX];
};

/*
 * Loads a file of lines "topic: word word …", in lower-case ASCII letters. Empty lines and lines
 * that begin with "#" are skipped. Returns false with the reason: the file, the line, and what is
 * expected.
 */
bool topics_load(struct topics *topics, const char *path, char *reason, size_t reason_size);

void topics_release(struct topics *topics);

/* Counts the words of a text, without regard to case. The text may be anything. */
void topics_count(
    const struct topics *topics, struct topic_counts *counts, const char *text, size_t size);

/*
 * Writes the numbers of the most frequent topics to chosen, the most frequent first, of equal ones
 * the first of the file. Returns how many there are; topics that were not found are not chosen.
 */
size_t topics_choose(const struct topics *topics, const struct topic_counts *counts,
    size_t chosen[TOPICS_CHOSEN_MAX]);

/* Appends the line that says a topic, in the canonical form of the type topics if it is UTF-8. */
void topics_line(struct text *content, const char *topic, size_t length);

/* Reports whether content, which such lines make up, says the topic of this name. */
bool topics_said(const char *content, size_t size, const char *name);

#endif
