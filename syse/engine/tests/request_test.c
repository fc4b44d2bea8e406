/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lines and the queries on them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lines.h"
#include "shai_wire.h"

static struct request found;

static const char *
read_line(const char *line)
{
	request_release(&found);
	return request_read(&found, line, strlen(line));
}

static void
test_a_query_is_read(void **state)
{
	(void)state;
	assert_null(read_line("{\"query\":4294967295,\"user\":\"al\\\"ice \\ud83d\\ude00\","
			      "\"friends\":[\"bob\",\"\"],\"text\":\"\",\"count\":10,"
			      "\"checked\":true,\"more\":{}}"));
	assert_true(found.query == UINT32_MAX);
	assert_string_equal(found.user, "al\"ice \xf0\x9f\x98\x80");
	assert_int_equal(json_array_size(found.friends), 2);
	assert_int_equal(found.count, 10);
	assert_true(found.checked);
	assert_null(read_line("{\"query\":0,\"user\":\"u\",\"text\":\"t\",\"count\":1000000}"));
	assert_int_equal(found.count, SHAI_BATCH_MAX);
	assert_false(found.checked);
}

static void
test_what_is_no_query_is_refused_and_its_number_is_kept(void **state)
{
	static const char *const numbered[] = {
	    "{\"query\":7}",
	    "{\"query\":7,\"user\":1,\"text\":\"t\",\"count\":1}",
	    "{\"query\":7,\"user\":\"u\",\"count\":1}",
	    "{\"query\":7,\"user\":\"u\",\"text\":[],\"count\":1}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\"}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\",\"count\":0}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\",\"count\":-1}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\",\"count\":1,\"friends\":\"bob\"}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\",\"count\":1,\"friends\":[1]}",
	    "{\"query\":7,\"user\":\"u\",\"text\":\"t\",\"count\":1,\"checked\":1}",
	};
	static const char *const other[] = {"", "x", "[]", "7", "{}", "{\"query\":-1}",
	    "{\"query\":4294967296}", "{\"query\":\"7\"}", "{\"query\":7.5}", "{\"query\":7",
	    "{\"query\":1,\"user\":\"\\u0000\",\"text\":\"t\",\"count\":1}"};

	(void)state;
	for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++) {
		assert_non_null(read_line(numbered[i]));
		assert_int_equal(found.query, 7);
	}
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
		assert_non_null(read_line(other[i]));
		assert_int_equal(found.query, 0);
	}
	request_release(&found);
}

/* A pipe with what was written to it, which has ended. */
static struct lines
written(const char *text, size_t size)
{
	struct lines lines = {0};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, size), size);
	(void)close(ends[1]);
	lines.pipe = ends[0];
	return lines;
}

static void
test_lines_are_told_apart(void **state)
{
	struct lines lines = written("one\n\ntwo\nthr", 12);
	const char *line;
	size_t length;

	(void)state;
	assert_int_equal(lines_next(&lines, &line, &length), LINES_LINE);
	assert_memory_equal(line, "one", length);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_LINE);
	assert_int_equal(length, 0);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_LINE);
	assert_memory_equal(line, "two", length);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_END);
	(void)close(lines.pipe);
}

static void
test_a_line_that_is_too_long_is_skipped_to_its_end(void **state)
{
	size_t size = 5 * REQUEST_LINE_MAX;
	char *text = malloc(size);
	struct lines lines;
	const char *line;
	size_t length;

	(void)state;
	memset(text, 'x', size);
	text[REQUEST_LINE_MAX - 1] = '\n';      /* the longest line */
	text[2 * REQUEST_LINE_MAX] = '\n';      /* one byte too long */
	text[size - 4] = text[size - 1] = '\n'; /* much too long, then two bytes */
	lines = written(text, size);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_LINE);
	assert_int_equal(length, REQUEST_LINE_MAX - 1);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_TOO_LONG);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_TOO_LONG);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_LINE);
	assert_int_equal(length, 2);
	assert_int_equal(lines_next(&lines, &line, &length), LINES_END);
	(void)close(lines.pipe);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_query_is_read),
	    cmocka_unit_test(test_what_is_no_query_is_refused_and_its_number_is_kept),
	    cmocka_unit_test(test_lines_are_told_apart),
	    cmocka_unit_test(test_a_line_that_is_too_long_is_skipped_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
