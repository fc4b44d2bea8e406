/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A few words to find in text, without regard to case: those of a query, or a user's
 * interests.
 */
#ifndef SYSE_TERMS_H
#define SYSE_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#define TERMS_MAX 32 /* further ones are ignored */

struct span {
	size_t start;
	size_t length; /* in bytes */
};

struct terms {
	size_t count;
	struct span term[TERMS_MAX]; /* within "words" */
	const char *words;           /* borrowed */
	bool first[256];             /* bytes with which a term can begin, in either case */
};

enum terms_match {
	TERMS_WHOLE, /* the term is a whole word, or words */
	TERMS_PREFIX /* the word may continue after the term */
};

/*
 * Finds the next word of a text at or after *at, and moves *at behind it. Returns whether there is
 * one.
 */
bool terms_next_word(const char *text, size_t size, size_t *at, struct span *word);

/* Makes terms of the words in text, which must outlive them. */
void terms_split(struct terms *terms, const char *text, size_t size);

/* Adds text[start..start+length) as one term, which may consist of several words. */
void terms_add(struct terms *terms, size_t start, size_t length);

/*
 * Finds the first term that begins at the start of a word at or after "from". Returns
 * whether there is one.
 */
bool terms_find(const struct terms *terms, enum terms_match match, const char *text, size_t size,
    size_t from, struct span *hit);

#endif
