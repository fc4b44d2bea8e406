/* SPDX-License-Identifier: BSD-2-Clause */
#include "advertisements.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "topics.h"

/* Cuts the content into lines. Returns NULL, or what is wrong. */
static const char *
read_lines(struct advertisements *advertisements)
{
	char *rest, *line;

	for (line = strtok_r(advertisements->content, "\r\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		char *text = strstr(line, ": ");

		if (line[0] == '#')
			continue;
		if (text == NULL)
			return "an advertisement has no topic; expected \"topic: text\"";
		*text = '\0';
		advertisements->list[advertisements->count++] =
		    (struct advertisement){.topic = line, .text = text + 2};
	}
	return advertisements->count > 0
		   ? NULL
		   : "it contains no advertisement; expected lines \"topic: text\"";
}

bool
advertisements_load(
    struct advertisements *advertisements, const char *path, char *reason, size_t reason_size)
{
	const char *wrong = "out of memory";
	size_t size;

	memset(advertisements, 0, sizeof *advertisements);
	advertisements->content = file_read(path, 0, &size, reason, reason_size);
	if (advertisements->content == NULL)
		return false;
	advertisements->list =
	    calloc(file_lines(advertisements->content), sizeof *advertisements->list);
	if (advertisements->list != NULL)
		wrong = read_lines(advertisements);
	if (wrong == NULL)
		return true;
	snprintf(reason, reason_size, "read %s: %s", path, wrong);
	advertisements_release(advertisements);
	return false;
}

void
advertisements_release(struct advertisements *advertisements)
{
	free(advertisements->content);
	free(advertisements->list);
	memset(advertisements, 0, sizeof *advertisements);
}

/* Returns how many advertisements are of a topic that is said; the one of this number is *found. */
static size_t
count_said(const struct advertisements *advertisements, const char *content, size_t size,
    size_t number, const char **found)
{
	size_t count = 0;

	for (size_t i = 0; i < advertisements->count; i++)
		if (topics_said(content, size, advertisements->list[i].topic) && count++ == number)
			*found = advertisements->list[i].text;
	return count;
}

const char *
advertisements_choose(const struct advertisements *advertisements, const char *query,
    size_t query_length, const char *content, size_t size)
{
	uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */
	const char *found = NULL;
	size_t said = count_said(advertisements, content, size, 0, &found);

	for (size_t i = 0; i < query_length; i++)
		hash = (hash ^ (unsigned char)query[i]) * 0x100000001B3;
	if (said == 0)
		return advertisements->list[hash % advertisements->count].text;
	(void)count_said(advertisements, content, size, (size_t)(hash % said), &found);
	return found;
}
