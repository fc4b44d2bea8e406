/* SPDX-License-Identifier: BSD-2-Clause */
#include "header.h"

#include <stdbool.h>
#include <string.h>

/* A part of the text, which is not terminated. */
struct part {
	const char *start;
	size_t size;
};

static bool
is_blank(char character)
{
	return character == ' ' || character == '\t' || character == '\r';
}

static struct part
stripped(const char *start, const char *end)
{
	while (start < end && is_blank(*start))
		start++;
	while (end > start && is_blank(end[-1]))
		end--;
	return (struct part){start, (size_t)(end - start)};
}

static bool
equals(struct part part, const char *word)
{
	return part.size == strlen(word) && memcmp(part.start, word, part.size) == 0;
}

static enum visibility
visibility_of(struct part value)
{
	if (equals(value, "public"))
		return VISIBILITY_PUBLIC;
	if (equals(value, "private"))
		return VISIBILITY_PRIVATE;
	return equals(value, "friends") ? VISIBILITY_FRIENDS : 0;
}

static const char *
complete(struct header *header, bool titled, struct part owner)
{
	bool owned = owner.size > 0 && !equals(owner, "-");

	if (!titled || owner.size == 0 || header->visibility == 0)
		return "its header has no title, owner, or visibility of public, private or "
		       "friends";
	if (owned == (header->visibility == VISIBILITY_PUBLIC))
		return "a public document has no owner, and any other has one";
	if (owner.size >= sizeof header->owner || memchr(owner.start, '\0', owner.size) != NULL)
		return "its owner's name is too long, or no text";
	memcpy(header->owner, owner.start, owned ? owner.size : 0);
	header->owner[owned ? owner.size : 0] = '\0';
	return NULL;
}

const char *
header_read(const char *text, size_t size, struct header *header)
{
	const char *end = text + size;
	struct part owner = {text, 0};
	bool titled = false;

	header->visibility = 0;
	for (const char *line = text;;) {
		const char *over = memchr(line, '\n', (size_t)(end - line));
		const char *colon;

		if (over == NULL)
			return "it ends within the header";
		if (over == line)
			return complete(header, titled, owner);
		colon = memchr(line, ':', (size_t)(over - line));
		if (colon == NULL || colon + 1 == over || colon[1] != ' ')
			return "a line of its header is not of the form \"field: value\"";
		if (equals((struct part){line, (size_t)(colon - line)}, "title"))
			titled = true;
		else if (equals((struct part){line, (size_t)(colon - line)}, "owner"))
			owner = stripped(colon + 1, over);
		else if (equals((struct part){line, (size_t)(colon - line)}, "visibility"))
			header->visibility = visibility_of(stripped(colon + 1, over));
		line = over + 1;
	}
}
