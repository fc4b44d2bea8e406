/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Topics of texts, and the advertisements that are chosen by them.
 */
#include "topics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "advertisements.h"

static char reason[512];

/* Makes a file of a text; its path is valid until the next call. */
static const char *
file_of(const char *text)
{
	static char path[64];
	static int descriptor = -1;

	if (descriptor >= 0)
		close(descriptor);
	descriptor = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
	snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
	return path;
}

static void
files_are_checked(void **state)
{
	static const struct {
		const char *text, *wrong;
	} cases[] = {
	    {"", "line 2: the file has no topic"},
	    {"# nothing\n", "line 3: the file has no topic"},
	    {"weather rain\n", "line 1: expected \"topic: word word …\""},
	    {"a: b\n\n: rain\n", "line 3: a topic's name has"},
	    {"Weather: rain\n", "line 1: a topic's name has"},
	    {"weather: rain 7\n", "line 1: a word has"},
	    {"weather: r\xc3\xa4in\n", "line 1: a word has"},
	    {"weather: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "line 1: a word has"},
	};
	struct topics topics;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_false(topics_load(&topics, file_of(cases[i].text), reason, sizeof reason));
		if (strstr(reason, cases[i].wrong) == NULL)
			fail_msg("%s instead of %s", reason, cases[i].wrong);
	}
	assert_false(topics_load(&topics, "/nowhere", reason, sizeof reason));
	assert_non_null(strstr(reason, "read /nowhere: No such file"));
}

static void
a_file_has_so_many_topics(void **state)
{
	char text[64 * (TOPICS_MAX + 1)] = "";
	struct topics topics;

	(void)state;
	for (int i = 0; i < TOPICS_MAX; i++)
		sprintf(text + strlen(text), "topic%c%c: rain\n", 'a' + i / 26, 'a' + i % 26);
	assert_true(topics_load(&topics, file_of(text), reason, sizeof reason));
	topics_release(&topics);
	strcat(text, "onemore: rain\n");
	assert_false(topics_load(&topics, file_of(text), reason, sizeof reason));
	assert_non_null(strstr(reason, "more than 32"));
}

static void
the_most_frequent_three_are_chosen(void **state)
{
	static const struct {
		const char *text, *chosen;
	} cases[] = {
	    {"", ""},
	    {"nothing of it", ""},
	    {"RAIN, Rain; rainy \xff\xff rain", "w"},
	    {"ship rain ship", "nw"},
	    {"salt", "cs"}, /* one word, two topics */
	    {"king ship rain salt",
		"chn"}, /* of equal ones the first of the file; science is fourth */
	    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa rain", "w"},
	};
	struct topics topics;

	(void)state;
	assert_true(topics_load(&topics,
	    file_of("cookery: salt\nhistory: king\nnautical: ship\nscience: salt\nweather: rain "
		    "snow\n"),
	    reason, sizeof reason));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct topic_counts counts = {0};
		size_t chosen[TOPICS_CHOSEN_MAX], found;

		topics_count(&topics, &counts, cases[i].text, strlen(cases[i].text));
		found = topics_choose(&topics, &counts, chosen);
		assert_int_equal(found, strlen(cases[i].chosen));
		for (size_t j = 0; j < found; j++)
			assert_int_equal(topics.name[chosen[j]][0], cases[i].chosen[j]);
	}
	topics_release(&topics);
}

/* Sys-E's own: the policy "topics" counts on names of 7 to 9 letters. */
static void
own_topics_and_advertisements_fit(void **state)
{
	struct advertisements advertisements;
	struct topics topics;

	(void)state;
	assert_true(topics_load(&topics, SYSE_ASSETS "/topics.txt", reason, sizeof reason));
	assert_true(advertisements_load(
	    &advertisements, SYSE_ASSETS "/advertisements.txt", reason, sizeof reason));
	for (size_t i = 0; i < topics.count; i++) {
		size_t of_topic = 0;

		assert_in_range(strlen(topics.name[i]), 7, 9);
		for (size_t j = 0; j < advertisements.count; j++)
			of_topic += strcmp(advertisements.list[j].topic, topics.name[i]) == 0;
		assert_int_not_equal(of_topic, 0);
	}
	topics_release(&topics);
	advertisements_release(&advertisements);
}

static void
lines_are_said_whole(void **state)
{
	static const char content[] =
	    "topic(\"history\")\ntopic(\"a \\\"b\\\\\")\ntopic(\"weather\")";

	(void)state;
	assert_true(topics_said(content, strlen(content), "history"));
	assert_true(topics_said(content, strlen(content), "a \"b\\"));
	assert_false(topics_said(content, strlen(content), "weather")); /* its line has no end */
	assert_false(topics_said(content, strlen(content), "hist"));
	assert_false(topics_said(content, 0, "history"));
	assert_false(topics_said(NULL, 0, "history"));
}

static void
advertisements_follow_the_topics(void **state)
{
	static const char file[] = "# ours\nhistory: Ink\n\nnautical: Rope\nnautical: Oil: burns\n";
	static const char nautical[] = "topic(\"weather\")\ntopic(\"nautical\")\n";
	struct advertisements ours;
	unsigned seen = 0;

	(void)state;
	assert_true(advertisements_load(&ours, file_of(file), reason, sizeof reason));
	for (char query = 'a'; query <= 'z'; query++) {
		const char *chosen =
		    advertisements_choose(&ours, &query, 1, nautical, sizeof nautical - 1);

		assert_ptr_equal(
		    chosen, advertisements_choose(&ours, &query, 1, nautical, sizeof nautical - 1));
		seen |= strcmp(chosen, "Rope") == 0         ? 1u
			: strcmp(chosen, "Oil: burns") == 0 ? 2u
							    : 4u;
	}
	assert_int_equal(seen, 3); /* both of the topic, and no other */
	seen = 0;
	for (char query = 'a'; query <= 'z'; query++)
		seen |= 1u << advertisements_choose(&ours, &query, 1, "", 0)[0] % 26;
	assert_int_equal(seen, 1u << 'I' % 26 | 1u << 'R' % 26 | 1u << 'O' % 26);
	advertisements_release(&ours);
	assert_false(advertisements_load(&ours, file_of("Ink\n"), reason, sizeof reason));
	assert_non_null(strstr(reason, "an advertisement has no topic"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(files_are_checked),
	    cmocka_unit_test(a_file_has_so_many_topics),
	    cmocka_unit_test(the_most_frequent_three_are_chosen),
	    cmocka_unit_test(own_topics_and_advertisements_fit),
	    cmocka_unit_test(lines_are_said_whole),
	    cmocka_unit_test(advertisements_follow_the_topics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
