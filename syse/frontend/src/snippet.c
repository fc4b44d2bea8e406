/* SPDX-License-Identifier: BSD-2-Clause */
#include "snippet.h"

#include "utf8.h"

/* The distance by which a cut may move to reach a boundary. A longer word is cut. */
#define REACH 40

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/*
 * Returns the start of the first word at or after "start" that is in reach and not
 * after "limit", if there is one.
 */
static size_t
cut_start(const char *document, size_t start, size_t limit)
{
	size_t at = start;

	if (start == 0)
		return 0;
	while (at < limit && at - start < REACH && !is_space(document[at - 1]))
		at++;
	if (at == limit || at - start == REACH)
		return utf8_floor(document, start);
	return at;
}

/*
 * Returns the end of the last word at or before "end" that is in reach and after
 * "limit", if there is one.
 */
static size_t
cut_end(const char *document, size_t size, size_t end, size_t limit)
{
	size_t at = end;

	if (end == size)
		return size;
	while (at > limit && end - at < REACH && !is_space(document[at]))
		at--;
	if (at <= limit || end - at == REACH)
		return utf8_floor(document, end);
	return at;
}

static void
write_collapsed(struct text *out, const char *data, size_t size)
{
	bool gap = false;
	bool begun = false;

	for (size_t i = 0; i < size; i++) {
		if (is_space(data[i])) {
			gap = true;
			continue;
		}
		if (gap && begun)
			text_append(out, " ", 1);
		gap = false;
		begun = true;
		text_append(out, data + i, 1);
	}
}

void
snippet_write(struct text *out, const struct terms *terms, const char *document, size_t size)
{
	struct span hit = {0, 0};
	size_t start, end;

	if (!terms_find(terms, TERMS_WHOLE, document, size, 0, &hit))
		terms_find(terms, TERMS_PREFIX, document, size, 0, &hit);
	while (size > 0 && is_space(document[size - 1]))
		size--;
	start = hit.start > SNIPPET_BEFORE ? hit.start - SNIPPET_BEFORE : 0;
	start = cut_start(document, start, hit.start);
	end = size - start > SNIPPET_SIZE ? start + SNIPPET_SIZE : size;
	end = cut_end(
	    document, size, end, hit.start + hit.length < end ? hit.start + hit.length : end);
	if (start > 0)
		text_string(out, SNIPPET_ELLIPSIS);
	write_collapsed(out, document + start, end - start);
	if (end < size)
		text_string(out, SNIPPET_ELLIPSIS);
}
