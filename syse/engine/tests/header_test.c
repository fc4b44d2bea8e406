/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "header.h"

static struct header found;

static const char *
read_text(const char *text)
{
	memset(&found, 0, sizeof found);
	return header_read(text, strlen(text), &found);
}

static void
test_owner_and_visibility_are_found_in_any_order(void **state)
{
	(void)state;
	assert_null(read_text("title: a\nowner: bob\nvisibility: private\n\nbody"));
	assert_int_equal(found.visibility, VISIBILITY_PRIVATE);
	assert_string_equal(found.owner, "bob");
	assert_null(read_text("visibility:  friends \r\nlater: x\nowner: \t bob\ntitle: \n\n"));
	assert_int_equal(found.visibility, VISIBILITY_FRIENDS);
	assert_string_equal(found.owner, "bob");
	assert_null(read_text("title: a\nowner: -\nvisibility: public\n\n"));
	assert_int_equal(found.visibility, VISIBILITY_PUBLIC);
	assert_string_equal(found.owner, "");
}

static void
test_what_is_no_header_is_refused(void **state)
{
	static const char *const broken[] = {
	    "",
	    "\n",
	    "title: a",
	    "title: a\nowner: bob\nvisibility: private",
	    "title: a\nowner: bob\nvisibility: private\n",
	    "owner: bob\nvisibility: private\n\n",
	    "title: a\nvisibility: private\n\n",
	    "title: a\nowner: \nvisibility: private\n\n",
	    "title: a\nowner: bob\nvisibility: Private\n\n",
	    "title: a\nowner: bob\nvisibility: privat\n\n",
	    "title: a\nowner: bob\nvisibility: public\n\n",
	    "title: a\nowner: -\nvisibility: friends\n\n",
	    "title:a\nowner: bob\nvisibility: private\n\n",
	    "title: a\nowner:\nvisibility: private\n\n",
	    "title\nowner: bob\nvisibility: private\n\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
		assert_non_null(read_text(broken[i]));
}

static void
test_a_name_that_is_too_long_or_no_text_is_refused(void **state)
{
	static const char before[] = "title: a\nvisibility: private\nowner: ";
	char text[sizeof before + HEADER_OWNER_SIZE + 2];
	size_t size = sizeof before - 1 + HEADER_OWNER_SIZE;

	(void)state;
	memset(text, 'x', sizeof text);
	memcpy(text, before, sizeof before - 1);
	memcpy(text + size, "\n\n", 2);
	assert_non_null(header_read(text, size + 2, &found));
	memcpy(text + size - 1, "\n\n", 2);
	assert_null(header_read(text, size + 1, &found));
	assert_int_equal(strlen(found.owner), HEADER_OWNER_SIZE - 1);
	text[size - 3] = '\0';
	assert_non_null(header_read(text, size + 1, &found));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_owner_and_visibility_are_found_in_any_order),
	    cmocka_unit_test(test_what_is_no_header_is_refused),
	    cmocka_unit_test(test_a_name_that_is_too_long_or_no_text_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
