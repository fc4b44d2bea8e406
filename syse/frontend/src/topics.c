/* SPDX-License-Identifier: BSD-2-Clause */
#include "topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "terms.h"
#include "utf8.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"

static int
compare_words(const void *a, const void *b)
{
	return strcmp(((const struct topic_word *)a)->word, ((const struct topic_word *)b)->word);
}

static bool
is_word(const char *word)
{
	size_t length = strlen(word);

	return length > 0 && length <= TOPICS_NAME_MAX && strspn(word, LETTERS) == length;
}

/* Adds the topic of a line, which it cuts into words. Returns NULL, or what is wrong. */
static const char *
add_topic(struct topics *topics, char *line)
{
	char *colon = strchr(line, ':'), *rest, *word;

	if (colon == NULL)
		return "expected \"topic: word word …\"";
	*colon = '\0';
	if (!is_word(line))
		return "a topic's name has 1 to 31 lower-case letters, and a colon after it";
	if (topics->count == TOPICS_MAX)
		return "there are more than 32 topics";
	topics->name[topics->count] = line;
	for (word = strtok_r(colon + 1, " \t", &rest); word != NULL;
	     word = strtok_r(NULL, " \t", &rest)) {
		if (!is_word(word))
			return "a word has 1 to 31 lower-case letters";
		topics->words[topics->word_count++] =
		    (struct topic_word){.word = word, .topic = topics->count};
	}
	topics->count++;
	return NULL;
}

/* Reads the lines of topics->content. Returns NULL, or what is wrong with line *number. */
static const char *
read_lines(struct topics *topics, size_t *number)
{
	char *next = topics->content, *line;

	for (*number = 1; (line = strsep(&next, "\n")) != NULL; ++*number) {
		const char *wrong =
		    line[0] == '\0' || line[0] == '#' ? NULL : add_topic(topics, line);

		if (wrong != NULL)
			return wrong;
	}
	return topics->count > 0 ? NULL : "the file has no topic; expected \"topic: word word …\"";
}

bool
topics_load(struct topics *topics, const char *path, char *reason, size_t reason_size)
{
	const char *wrong;
	size_t size, line;

	memset(topics, 0, sizeof *topics);
	topics->content = file_read(path, 0, &size, reason, reason_size);
	if (topics->content == NULL)
		return false;
	topics->words = calloc(size / 2 + 1, sizeof *topics->words); /* a letter and a space each */
	if (topics->words == NULL) {
		snprintf(reason, reason_size, "read %s: out of memory", path);
		topics_release(topics);
		return false;
	}
	wrong = read_lines(topics, &line);
	if (wrong != NULL) {
		snprintf(reason, reason_size, "read %s, line %zu: %s", path, line, wrong);
		topics_release(topics);
		return false;
	}
	qsort(topics->words, topics->word_count, sizeof *topics->words, compare_words);
	return true;
}

void
topics_release(struct topics *topics)
{
	free(topics->content);
	free(topics->words);
	memset(topics, 0, sizeof *topics);
}

/* Counts the topics of one word in lower case. */
static void
count_word(const struct topics *topics, struct topic_counts *counts, const char *word)
{
	size_t low = 0, high = topics->word_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(topics->words[middle].word, word) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < topics->word_count && strcmp(topics->words[low].word, word) == 0; low++)
		counts->count[topics->words[low].topic]++;
}

void
topics_count(
    const struct topics *topics, struct topic_counts *counts, const char *text, size_t size)
{
	struct span span;

	for (size_t at = 0; terms_next_word(text, size, &at, &span);) {
		char word[TOPICS_NAME_MAX + 1];

		if (span.length > TOPICS_NAME_MAX)
			continue;
		for (size_t i = 0; i < span.length; i++) {
			unsigned char byte = (unsigned char)text[span.start + i];

			word[i] = (char)(byte < 0x80 ? utf8_fold(byte) : byte);
		}
		word[span.length] = '\0';
		count_word(topics, counts, word);
	}
}

size_t
topics_choose(const struct topics *topics, const struct topic_counts *counts,
    size_t chosen[TOPICS_CHOSEN_MAX])
{
	struct topic_counts left = *counts;
	size_t found = 0;

	while (found < TOPICS_CHOSEN_MAX) {
		size_t best = 0;

		for (size_t topic = 1; topic < topics->count; topic++)
			if (left.count[topic] > left.count[best])
				best = topic;
		if (left.count[best] == 0)
			break;
		left.count[best] = 0;
		chosen[found++] = best;
	}
	return found;
}

void
topics_line(struct text *content, const char *topic, size_t length)
{
	text_string(content, "topic(");
	text_quoted(content, topic, length);
	text_string(content, ")\n");
}

bool
topics_said(const char *content, size_t size, const char *name)
{
	char storage[TOPICS_NAME_MAX + sizeof "topic(\"\")\n"];
	struct text line;

	text_init(&line, storage, sizeof storage);
	topics_line(&line, name, strlen(name));
	if (line.overflowed)
		return false;
	for (const char *at = content; size > 0;) {
		const char *end = memchr(at, '\n', size);
		size_t length = end == NULL ? size : (size_t)(end - at) + 1;

		if (length == line.length && memcmp(at, line.data, length) == 0)
			return true;
		at += length;
		size -= length;
	}
	return false;
}
