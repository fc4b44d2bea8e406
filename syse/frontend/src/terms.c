/* SPDX-License-Identifier: BSD-2-Clause */
#include "terms.h"

#include <stdint.h>
#include <string.h>

#include "utf8.h"

/* Decodes the character at "at". Invalid bytes count as a character outside of words. */
static size_t
character_at(const char *text, size_t size, size_t at, uint32_t *character)
{
	size_t length = utf8_decode(text + at, size - at, character);

	if (length > 0)
		return length;
	*character = 0xFFFD;
	return 1;
}

void
terms_add(struct terms *terms, size_t start, size_t length)
{
	unsigned char first;

	if (terms->count == TERMS_MAX || length == 0)
		return;
	terms->term[terms->count++] = (struct span){start, length};
	first = (unsigned char)terms->words[start];
	if (first < 0x80) {
		terms->first[utf8_fold(first)] = true;
		if (utf8_fold(first) >= 'a' && utf8_fold(first) <= 'z')
			terms->first[utf8_fold(first) - 32] = true;
		return;
	}
	/* Beyond ASCII, upper and lower case can have different first bytes. */
	memset(terms->first + 0x80, true, 0x80);
}

bool
terms_next_word(const char *text, size_t size, size_t *at, struct span *word)
{
	bool inside = false;

	while (*at < size) {
		uint32_t character;
		size_t length = character_at(text, size, *at, &character);
		bool in_word = utf8_in_word(character);

		if (in_word && !inside)
			word->start = *at;
		if (!in_word && inside)
			break;
		inside = in_word;
		*at += length;
	}
	if (inside)
		word->length = *at - word->start;
	return inside;
}

void
terms_split(struct terms *terms, const char *text, size_t size)
{
	struct span word;

	memset(terms, 0, sizeof *terms);
	terms->words = text;
	for (size_t at = 0; terms_next_word(text, size, &at, &word);)
		terms_add(terms, word.start, word.length);
}

/*
 * Returns the length of the text at "at" that equals the term without regard to case,
 * or 0.
 */
static size_t
match_length(const struct terms *terms, struct span term, const char *text, size_t size, size_t at)
{
	size_t position = at;

	for (size_t i = 0; i < term.length;) {
		uint32_t wanted, found;

		if (position >= size)
			return 0;
		i += character_at(terms->words + term.start, term.length, i, &wanted);
		position += character_at(text, size, position, &found);
		if (utf8_fold(wanted) != utf8_fold(found))
			return 0;
	}
	return position - at;
}

static bool
term_at(const struct terms *terms, enum terms_match match, const char *text, size_t size, size_t at,
    struct span *hit)
{
	for (size_t i = 0; i < terms->count; i++) {
		size_t length = match_length(terms, terms->term[i], text, size, at);
		uint32_t next = ' ';

		if (length == 0)
			continue;
		if (at + length < size)
			character_at(text, size, at + length, &next);
		if (match == TERMS_WHOLE && utf8_in_word(next))
			continue;
		*hit = (struct span){at, length};
		return true;
	}
	return false;
}

/*
 * Reports whether a word could begin at "at": the character before is not part of a
 * word.
 */
static bool
follows_gap(const char *text, size_t at)
{
	size_t before;
	uint32_t character;

	if (at == 0)
		return true;
	before = utf8_floor(text, at - 1);
	character_at(text, at, before, &character);
	return !utf8_in_word(character);
}

bool
terms_find(const struct terms *terms, enum terms_match match, const char *text, size_t size,
    size_t from, struct span *hit)
{
	bool inside;

	if (terms->count == 0 || from >= size)
		return false;
	inside = !follows_gap(text, from);
	for (size_t at = from; at < size;) {
		unsigned char byte = (unsigned char)text[at];
		uint32_t character = byte;
		size_t length = 1;
		bool in_word;

		if (byte >= 0x80)
			length = character_at(text, size, at, &character);
		in_word = utf8_in_word(character);
		if (in_word && !inside && terms->first[byte] &&
		    term_at(terms, match, text, size, at, hit))
			return true;
		inside = in_word;
		at += length;
	}
	return false;
}
