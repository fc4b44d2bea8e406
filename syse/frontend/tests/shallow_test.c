/* SPDX-License-Identifier: BSD-2-Clause
 *
 * JSON of others is read on a stack of a session's size, whatever it is.
 */
#include "shallow.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SESSION_STACK ((size_t)48 << 10) /* as in main.c */
#define LONG 100000

static char text[LONG + 64];

/* Repeats a piece until the text is long. Returns its length. */
static size_t
repeat(const char *piece, size_t length)
{
	for (size_t i = 0; i < length; i++)
		text[i] = piece[i % strlen(piece)];
	return length;
}

static void *
read_deep_texts(void *count)
{
	static const char *const pieces[] = {"[", "{\"a\":", "[{\"a\":", "{\"a\":[", "[[],",
	    "{\"]\":", "[\"]\\\"]\",", "[ \n", "]["};
	static const size_t lengths[] = {749, 4000, 4096, LONG};

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
		for (size_t j = 0; j < sizeof lengths / sizeof lengths[0]; j++)
			if (shallow_read(text, repeat(pieces[i], lengths[j])) == NULL)
				++*(int *)count;
	return NULL;
}

static void
deep_texts_are_refused_on_the_stack_of_a_session(void **state)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int refused = 0;

	(void)state;
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, SESSION_STACK), 0);
	assert_int_equal(pthread_create(&thread, &attributes, read_deep_texts, &refused), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_attr_destroy(&attributes), 0);
	assert_int_equal(refused, 9 * 4);
}

static bool
is_read(const char *json, size_t size)
{
	json_t *root = shallow_read(json, size);

	json_decref(root);
	return root != NULL;
}

static void
brackets_in_strings_do_not_count(void **state)
{
	static const struct {
		const char *json;
		bool read;
	} cases[] = {
	    {"[[[[[[[[]]]]]]]]", true},
	    {"[[[[[[[[[]]]]]]]]]", false},
	    {"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":0}}}}}}}}", true},
	    {"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}}}}}", false},
	    {"[[],[],[],[],[],[],[],[],[],[],[],[]]", true},
	    {"[\"[[[[[[[[[[[[[[[[{{{{{{{{{{{{\"]", true},
	    {"{\"[[[[[[[[[[[[{{{{\":\"\\\"[[[[[[[[[[[[[[[[\\\\\"}", true},
	    {"[\"\\\\\",[[[[[[[\"]]]]]]]]\"]]]]]]]]", true},
	    {"[\"\\\\\",[[[[[[[[\"]]]]]]]]\"]]]]]]]]]", false},
	    {"[\"\\\"\",[[[[[[[[\"]]]]]]]]\"]]]]]]]]]", false},
	    {"{\"a\":1,\"a\":2}", false},
	    {"[\"", false},
	    {"[\"\\", false},
	    {"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (is_read(cases[i].json, strlen(cases[i].json)) != cases[i].read)
			fail_msg("%s", cases[i].json);
}

static size_t
depth_of(json_t *value)
{
	size_t deepest = 0, i;
	const char *name;
	json_t *inner;

	if (!json_is_array(value) && !json_is_object(value))
		return 0;
	json_array_foreach(value, i, inner) deepest =
	    depth_of(inner) > deepest ? depth_of(inner) : deepest;
	json_object_foreach(value, name, inner) deepest =
	    depth_of(inner) > deepest ? depth_of(inner) : deepest;
	return deepest + 1;
}

static unsigned seed = 20180423;

static unsigned
next(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

/* Writes arrays in each other, with hard strings between them; one in four texts is then damaged.
 */
static size_t
write_any(void)
{
	static const char *const strings[] = {
	    "\"[\"", "\"\\\"[\"", "\"\\\\\"", "\"]\"", "\"\\\\\\\"{\"", "7"};
	size_t depth = next(2 * SHALLOW_DEPTH_MAX), length = 0;

	for (size_t i = 0; i < depth; i++)
		length += (size_t)sprintf(
		    text + length, "[%s,%s,", strings[next(6)], next(2) == 0 ? "[]" : "{\"}\":1}");
	length += (size_t)sprintf(text + length, "[");
	for (size_t i = 0; i <= depth; i++)
		length += (size_t)sprintf(text + length, "%s]", i == 0 ? "" : ",\"[[\"");
	if (next(4) == 0)
		text[next((unsigned)length)] = "[]{}\"\\,x"[next(8)];
	return length;
}

/* jansson is asked for the same text, on a stack that is large enough. */
static void
what_is_refused_is_malformed_or_deep(void **state)
{
	int deep = 0, read = 0, malformed = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t length = write_any();
		json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
		size_t depth = depth_of(root);

		if (is_read(text, length) != (root != NULL && depth <= SHALLOW_DEPTH_MAX))
			fail_msg("%.*s", (int)length, text);
		malformed += root == NULL;
		deep += depth > SHALLOW_DEPTH_MAX;
		read += root != NULL && depth <= SHALLOW_DEPTH_MAX;
		json_decref(root);
	}
	assert_true(malformed > 1000 && deep > 1000 && read > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(deep_texts_are_refused_on_the_stack_of_a_session),
	    cmocka_unit_test(brackets_in_strings_do_not_count),
	    cmocka_unit_test(what_is_refused_is_malformed_or_deep),
	};

	return cmocka_run_group_tests_name("shallow", tests, NULL, NULL);
}
