/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where terms are found, and what is shown around them.
 */
#include "snippet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "utf8.h"

#define ELLIPSIS SNIPPET_ELLIPSIS
#define TEN "aaaaaaaaa "
#define FIFTY TEN TEN TEN TEN TEN

struct find {
	const char *words, *text, *whole, *prefix; /* NULL: not found */
};

static const struct find FINDS[] = {
    {"blue", "The blue sky", "blue", "blue"}, {"BLUE", "the Blue sky", "Blue", "Blue"},
    {"blue", "bluebell", NULL, "blue"}, {"blue", "skyblue", NULL, NULL},
    {"blue", "sky-blue!", "blue", "blue"}, {"sky blue", "blue, then sky", "blue", "blue"},
    {"", "anything", NULL, NULL}, {"!?", "anything!?", NULL, NULL}, {"x", "", NULL, NULL},
    {"\xc3\x84pfel", "zwei \xc3\xa4pfel", "\xc3\xa4pfel", "\xc3\xa4pfel"}, /* Äpfel, äpfel */
    {"\xd0\xa0\xd0\xbe\xd0\xb4", "\xd1\x80\xd0\xbe\xd0\xb4", "\xd1\x80\xd0\xbe\xd0\xb4",
	"\xd1\x80\xd0\xbe\xd0\xb4"},
    {"a", "\xc3\xa4 a", "a", "a"},
    {"a",
	"\xff"
	"a",
	"a", "a"},
    {"don", "don\xe2\x80\x99t", "don", "don"}, /* U+2019 ends a word */
};

static void
test_find(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof FINDS / sizeof FINDS[0]; i++) {
		const struct find *f = &FINDS[i];
		const char *expected[] = {f->whole, f->prefix};
		struct terms terms;

		terms_split(&terms, f->words, strlen(f->words));
		for (int match = TERMS_WHOLE; match <= TERMS_PREFIX; match++) {
			struct span hit;
			bool found = terms_find(
			    &terms, (enum terms_match)match, f->text, strlen(f->text), 0, &hit);

			assert_int_equal(found, expected[match] != NULL);
			if (!found)
				continue;
			assert_int_equal(hit.length, strlen(expected[match]));
			assert_memory_equal(f->text + hit.start, expected[match], hit.length);
		}
	}
}

struct excerpt {
	const char *query, *document, *snippet;
};

static const struct excerpt EXCERPTS[] = {
    {"x", "", ""},
    {"x", " \n ", ""},
    {"back", "Toward the\n  back; \tbackward.\n", "Toward the back; backward."},
    {"absent", "Toward the back", "Toward the back"},
    {"back", "backward and back", "backward and back"},
};

static void
test_excerpts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof EXCERPTS / sizeof EXCERPTS[0]; i++) {
		char storage[SNIPPET_SIZE + 8];
		struct text text;
		struct terms terms;

		text_init(&text, storage, sizeof storage);
		terms_split(&terms, EXCERPTS[i].query, strlen(EXCERPTS[i].query));
		snippet_write(&text, &terms, EXCERPTS[i].document, strlen(EXCERPTS[i].document));
		assert_int_equal(text.length, strlen(EXCERPTS[i].snippet));
		assert_memory_equal(text.data, EXCERPTS[i].snippet, text.length);
	}
}

/* For a hit anywhere in text of any word length: it is shown, the size is kept, no word or
 * character is cut. */
static void
test_properties(void **state)
{
	static const char *const WORDS[] = {
	    "a", "word", "\xc3\xa4\xc3\xa4", "\xe6\x97\xa5\xe6\x9c\xac", "antidisestablishment"};
	unsigned seed = 42;
	struct terms terms;

	(void)state;
	terms_split(&terms, "needle", 6);
	for (int round = 0; round < 3000; round++) {
		char document[2048] = "", storage[SNIPPET_SIZE + 8];
		int count = round % 80, place = (round / 80) % (count + 1);
		struct text text;

		for (int i = 0; i <= count; i++) {
			seed = seed * 1103515245 + 12345;
			strcat(document, i == place ? "needle" : WORDS[(seed >> 16) % 5]);
			strcat(document, " ");
		}
		text_init(&text, storage, sizeof storage - 1);
		snippet_write(&text, &terms, document, strlen(document));
		assert_false(text.overflowed);
		assert_true(utf8_valid(text.data, text.length));
		storage[text.length] = '\0';
		assert_non_null(strstr(storage, "needle"));
		assert_null(strstr(storage, "  "));
	}
}

static void
test_a_cut_falls_between_words(void **state)
{
	static const char DOCUMENT[] = FIFTY FIFTY "hit " FIFTY FIFTY FIFTY FIFTY FIFTY;
	char storage[SNIPPET_SIZE + 8], expected[] = ELLIPSIS "aaaaaaaaa ";
	struct text text;
	struct terms terms;

	(void)state;
	text_init(&text, storage, sizeof storage);
	terms_split(&terms, "hit", 3);
	snippet_write(&text, &terms, DOCUMENT, sizeof DOCUMENT - 1);
	assert_memory_equal(text.data, expected, sizeof expected - 1);
	assert_memory_equal(text.data + text.length - 13, " aaaaaaaaa" ELLIPSIS, 13);
}

static void
test_a_word_without_end_is_cut_through(void **state)
{
	static char document[100000];
	char storage[SNIPPET_SIZE + 8];
	struct text text;
	struct terms terms;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof document; i += 2)
		memcpy(document + i, "\xc3\xa4", 2);
	text_init(&text, storage, sizeof storage);
	terms_split(&terms, "x", 1);
	snippet_write(&text, &terms, document, sizeof document);
	assert_false(text.overflowed);
	assert_int_equal(text.length, SNIPPET_SIZE + 3);
	assert_true(utf8_valid(text.data, text.length));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_excerpts),
	    cmocka_unit_test(test_properties),
	    cmocka_unit_test(test_a_cut_falls_between_words),
	    cmocka_unit_test(test_a_word_without_end_is_cut_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
