/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "shai.h"
#include "view.h"

static void
names_are_class_bucket_id(void **state)
{
	static const struct {
		uint32_t class, conduit;
		const char *name;
	} cases[] = {
	    {1, 1, "1/0/1"},
	    {110, 1023, "110/0/1023"},
	    {110, 1024, "110/1/1024"},
	    {UINT32_MAX, UINT32_MAX, "4294967295/4194303/4294967295"},
	    {0, 0, "0/0/0"},
	};
	char name[SHAI_VIEW_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		shai_view_name(cases[i].class, cases[i].conduit, name);
		assert_string_equal(name, cases[i].name);
	}
}

/* Every set of up to 40 even numbers: exactly its own members are found, each at its place. */
static void
classes_are_found_at_their_positions(void **state)
{
	uint32_t classes[40];

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		classes[i] = 2 * i + 2;
	for (uint32_t count = 0; count <= 40; count++)
		for (uint32_t class = 0; class < 90; class ++)
			assert_int_equal(shai_class_position(classes, count, class),
			    class != 0 && class % 2 == 0 && class <= 2 * count ? class / 2 - 1
									       : count);
}

static void
a_view_path_begins_with_a_class(void **state)
{
	static const char *const wrong[] = {"", ".", "..", "0", "0/1", "01/1", "+1/1", " 1/1",
	    "1x/1", "x/1", "-1/0", "4294967296/0", "99999999999999999999/0"};
	const char *rest;
	uint32_t class;

	(void)state;
	assert_true(shai_view_class("7/0/12", &class, &rest));
	assert_int_equal(class, 7);
	assert_string_equal(rest, "0/12");
	assert_true(shai_view_class("4294967295", &class, &rest));
	assert_true(class == UINT32_MAX);
	assert_string_equal(rest, ".");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(shai_view_class(wrong[i], &class, &rest));
}

static void
the_signed_text_names_service_pipeline_principal_nonce(void **state)
{
	static struct shai_session session = {
	    .nonce = {0x00, 0x0a, 0xff}, .service = "127.0.0.1:8640", .pipeline = "syse"};
	char text[SHAI_SIGNED_TEXT_SIZE];
	size_t length = shai_signed_text(&session, "alice", text);

	(void)state;
	assert_string_equal(text,
	    "shai-session-v2\n127.0.0.1:8640\nsyse\nalice\n"
	    "000aff0000000000000000000000000000000000000000000000000000000000");
	assert_int_equal(length, strlen(text));
}

/* With a line break, or without a name, one text could be that of other names. */
static void
the_signed_text_has_no_ambiguous_names(void **state)
{
	static const char *const wrong[] = {"", "alice\nbob", "\n"};
	static struct shai_session session;
	char *const field[] = {session.service, session.pipeline};
	char text[SHAI_SIGNED_TEXT_SIZE], longest[SHAI_NAME_MAX + 1];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[SHAI_NAME_MAX] = '\0';
	memset(session.service, 'x', SHAI_NAME_MAX - 1);
	memset(session.pipeline, 'x', SHAI_NAME_MAX - 1);
	assert_int_equal(shai_signed_text(&session, longest, text), 0);
	longest[SHAI_NAME_MAX - 1] = '\0';
	assert_int_equal(shai_signed_text(&session, longest, text), 16 + 3 * 96 + 64);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(shai_signed_text(&session, wrong[i], text), 0);
		for (size_t f = 0; f < 2; f++) {
			strcpy(field[f], wrong[i]);
			assert_int_equal(shai_signed_text(&session, "alice", text), 0);
			strcpy(field[f], "name");
			assert_int_not_equal(shai_signed_text(&session, "alice", text), 0);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_are_class_bucket_id),
	    cmocka_unit_test(classes_are_found_at_their_positions),
	    cmocka_unit_test(a_view_path_begins_with_a_class),
	    cmocka_unit_test(the_signed_text_names_service_pipeline_principal_nonce),
	    cmocka_unit_test(the_signed_text_has_no_ambiguous_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
