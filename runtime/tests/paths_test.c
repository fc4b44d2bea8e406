/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "paths.h"

static void
paths_are_normalised_by_name(void **state)
{
	static const struct {
		const char *path;
		const char *normal; /* NULL: refused */
	} cases[] = {
	    {"/", "/"},
	    {"//", "/"},
	    {"/.", "/"},
	    {"/..", "/"},
	    {"/../..", "/"},
	    {"/a", "/a"},
	    {"/a/", "/a"},
	    {"//a///b//", "/a/b"},
	    {"/a/./b/.", "/a/b"},
	    {"/a/../b", "/b"},
	    {"/a/b/../../c", "/c"},
	    {"/a/b/../../../c", "/c"},
	    {"/a/...", "/a/..."},
	    {"/a/..b/c..", "/a/..b/c.."},
	    {"/a/.b", "/a/.b"},
	    {"", NULL},
	    {"a", NULL},
	    {"./a", NULL},
	    {"../a", NULL},
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int result = shai_path_normalise(cases[i].path, out, sizeof(out));

		assert_int_equal(result, cases[i].normal == NULL ? -1 : 0);
		if (result == 0)
			assert_string_equal(out, cases[i].normal);
	}
}

static void
paths_that_do_not_fit_are_refused(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(shai_path_normalise("/123456", out, sizeof(out)), 0);
	assert_int_equal(shai_path_normalise("/1234567", out, sizeof(out)), -1);
	assert_int_equal(shai_path_normalise("/12345/../../../67", out, sizeof(out)), 0);
	assert_int_equal(shai_path_normalise("/", out, 1), -1);
}

/* Any path of these pieces: the result is normal, and normalising it changes nothing. */
static void
normalising_is_idempotent(void **state)
{
	static const char *const pieces[] = {"/", "//", "/.", "/..", "/a", "/.a", "/..a", "/ab/"};
	unsigned int seed = (unsigned int)time(NULL);

	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 20000; round++) {
		char path[128] = "/", once[128], twice[128];

		for (int n = rand() % 12; n > 0; n--)
			strcat(path, pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))]);
		assert_int_equal(shai_path_normalise(path, once, sizeof(once)), 0);
		assert_int_equal(shai_path_normalise(once, twice, sizeof(twice)), 0);
		assert_string_equal(once, twice);
		assert_null(strstr(once, "//"));
		assert_null(strstr(once, "/../"));
		assert_null(strstr(once, "/./"));
	}
}

static const struct shai_table *
make_table(void)
{
	static const struct shai_capability entries[] = {
	    {"/shai/view", 16, SHAI_KIND_DIRECTORY, 1},
	    {"/index", 17, SHAI_KIND_DIRECTORY, 3},
	    {"/index/1", 18, SHAI_KIND_DIRECTORY, 1},
	    {"/shai/pipe/queries/1", 33, SHAI_KIND_PIPE, 1},
	    {"/shai/pipe/queries/10", 42, SHAI_KIND_PIPE, 1},
	    {"/shai/channel/results", 96, SHAI_KIND_CHANNEL, 2},
	};
	static struct shai_table *table;

	if (table == NULL) {
		table = malloc(sizeof(*table) + sizeof(entries));
		table->count = sizeof(entries) / sizeof(entries[0]);
		memcpy(table->entry, entries, sizeof(entries));
	}
	return table;
}

static void
the_longest_prefix_of_whole_components_covers(void **state)
{
	static const struct {
		const char *path;
		int number; /* -1: none */
		const char *rest;
	} cases[] = {
	    {"/shai/view", 16, "."},
	    {"/shai/view/3/0/17", 16, "3/0/17"},
	    {"/shai/views", -1, NULL},
	    {"/shai/vie", -1, NULL},
	    {"/shai", -1, NULL},
	    {"/", -1, NULL},
	    {"/index", 17, "."},
	    {"/index/0/segments_1", 17, "0/segments_1"},
	    {"/index/1", 18, "."},
	    {"/index/1/a", 18, "a"},
	    {"/index/10", 17, "10"},
	    {"/indexes/1", -1, NULL},
	    {"/shai/pipe/queries/1", 33, "."},
	    {"/shai/pipe/queries/10", 42, "."},
	    {"/shai/pipe/queries/1/x", -1, NULL},
	    {"/shai/pipe/queries", -1, NULL},
	    {"/shai/channel/results", 96, "."},
	    {"/shai/channel/results/0", -1, NULL},
	    {"/etc/passwd", -1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct shai_capability *found;
		const char *rest = NULL;

		found = shai_table_find(make_table(), cases[i].path, &rest);
		assert_int_equal(found == NULL ? -1 : found->number, cases[i].number);
		if (found != NULL)
			assert_string_equal(rest, cases[i].rest);
	}
}

static void
relative_paths_stay_beneath(void **state)
{
	static const char *const outside[] = {"..", "../x", "a/../../x", "../viewer", "../../.."};
	char out[64];

	(void)state;
	assert_int_equal(shai_path_beneath("/shai/view", "1/./0//5", out, sizeof(out)), 0);
	assert_string_equal(out, "/shai/view/1/0/5");
	assert_int_equal(shai_path_beneath("/shai/view", ".", out, sizeof(out)), 0);
	assert_string_equal(out, "/shai/view");
	assert_int_equal(shai_path_beneath("/shai/view", "1/../2", out, sizeof(out)), 0);
	assert_string_equal(out, "/shai/view/2");
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		assert_int_equal(shai_path_beneath("/shai/view", outside[i], out, sizeof(out)), -1);
	assert_int_equal(shai_path_beneath("/shai/view", "1", out, 12), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(paths_are_normalised_by_name),
	    cmocka_unit_test(paths_that_do_not_fit_are_refused),
	    cmocka_unit_test(normalising_is_idempotent),
	    cmocka_unit_test(relative_paths_stay_beneath),
	    cmocka_unit_test(the_longest_prefix_of_whole_components_covers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
