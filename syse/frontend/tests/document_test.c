/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Documents, interests, and the order of results.
 */
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "profile.h"

struct parse {
	const char *file, *title, *owner, *visibility, *snippet;
	bool interesting; /* to somebody interested in the sky, and in big bangs */
};

static const struct parse PARSES[] = {
    {"title: T\nowner: -\nvisibility: public\n\ntext", "T", "-", "public", "text", false},
    {"title: T\r\nowner: -\r\nvisibility: public\r\n\r\ntext", "T", "-", "public", "text", false},
    {"title: The sky\nowner: bob\nvisibility: friends\n\nblue", "The sky", "bob", "friends", "blue",
	true},
    {"title: T\n\na Big BANG theory", "T", "", "", "a Big BANG theory", true},
    {"title: T\n\nskydiver", "T", "", "", "skydiver", false},
    {"title:\n\n", "", "", "", "", false},
    {"title: a: b\n\nx", "a: b", "", "", "x", false},
    {"no header", "", "", "", "no header", false},
    {"\ntitle: in the text", "", "", "", "title: in the text", false},
    {"titles: none\n\nx", "", "", "", "titles: none x", false},
    {"title: T", "T", "", "", "", false},
    {"", "", "", "", "", false},
};

static const char PROFILE[] =
    "{\"user\":\"alice\",\"interests\":[\"sky\",\"big bang\"],\"friends\":[\"bob\"]}";

static void
assert_part(const char *data, size_t length, const char *expected)
{
	assert_int_equal(length, strlen(expected));
	assert_memory_equal(data, expected, length);
}

static void
test_parse(void **state)
{
	struct profile profile;
	struct terms query;

	(void)state;
	assert_true(profile_parse(&profile, PROFILE, sizeof PROFILE - 1));
	terms_split(&query, "x", 1);
	for (size_t i = 0; i < sizeof PARSES / sizeof PARSES[0]; i++) {
		const struct parse *p = &PARSES[i];
		struct document document;

		document_parse(&document, p->file, strlen(p->file), &query, &profile.interests);
		assert_part(document.title, document.title_length, p->title);
		assert_part(document.owner.data, document.owner.length, p->owner);
		assert_part(document.visibility.data, document.visibility.length, p->visibility);
		assert_part(document.snippet, document.snippet_length, p->snippet);
		assert_int_equal(document.interesting, p->interesting);
	}
	profile_release(&profile);
}

static void
test_long_fields_are_cut_between_characters(void **state)
{
	struct document document;
	struct terms none = {.count = 0};
	char file[1024] = "title: x";

	(void)state;
	for (int i = 0; i < 200; i++)
		strcat(file, "\xc3\xa4");
	document_parse(&document, file, strlen(file), &none, &none);
	assert_int_equal(document.title_length, DOCUMENT_TITLE_MAX - 1);
}

/* "interesting" by letter: upper case is. */
static void
test_personalise(void **state)
{
	static const char *const ORDERS[][2] = {{"", ""}, {"a", "a"}, {"A", "A"}, {"aB", "Ba"},
	    {"AbCdE", "ACEbd"}, {"abC", "Cab"}, {"ABC", "ABC"}, {"abcABC", "ABCabc"}};

	(void)state;
	for (size_t i = 0; i < sizeof ORDERS / sizeof ORDERS[0]; i++) {
		static struct document documents[8];
		size_t count = strlen(ORDERS[i][0]);

		for (size_t k = 0; k < count; k++) {
			documents[k].id = (uint32_t)(unsigned char)ORDERS[i][0][k];
			documents[k].interesting = documents[k].id < 'a';
		}
		document_personalise(documents, count);
		for (size_t k = 0; k < count; k++)
			assert_int_equal(documents[k].id, ORDERS[i][1][k]);
	}
}

static void
test_profiles_that_are_none(void **state)
{
	static const char *const BAD[] = {"{", "[]", "\"x\"", "{} x", "{\"a\":1,\"a\":2}"};
	struct profile profile;

	(void)state;
	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
		assert_false(profile_parse(&profile, BAD[i], strlen(BAD[i])));
		assert_null(profile.friends);
		assert_int_equal(profile.interests.count, 0);
		profile_release(&profile);
	}
	assert_true(profile_parse(&profile, NULL, 0));
	profile_release(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_long_fields_are_cut_between_characters),
	    cmocka_unit_test(test_personalise),
	    cmocka_unit_test(test_profiles_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
