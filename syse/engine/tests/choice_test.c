/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "choice.h"
#include "shai_wire.h"

#define DRAWS 2000

static struct documents documents;
static struct chance chance = {{1, 2, 3}};

static void
add(uint32_t conduit, const char *owner, enum visibility visibility)
{
	struct header header = {.visibility = visibility};

	strcpy(header.owner, owner);
	assert_int_equal(documents_add(&documents, (struct document){conduit, 0}, &header), 0);
}

static int
make_documents(void **state)
{
	(void)state;
	documents = (struct documents){.places = json_object(), .root = -1};
	add(1, "alice", VISIBILITY_PRIVATE);
	add(2, "bob", VISIBILITY_PRIVATE);
	add(3, "", VISIBILITY_PUBLIC);
	add(4, "bob", VISIBILITY_FRIENDS);
	add(5, "carol", VISIBILITY_FRIENDS);
	return 0;
}

static int
release_documents(void **state)
{
	(void)state;
	documents_release(&documents);
	return 0;
}

/* Returns a bit for each document that is picked at least once in many draws. */
static unsigned
picked(const char *user, json_t *friends, uint32_t count)
{
	const struct request request = {.user = user, .friends = friends, .count = count};
	struct document out[SHAI_BATCH_MAX];
	unsigned all = 0;

	for (int i = 0; i < DRAWS; i++) {
		size_t got = choose(&documents, &request, &chance, out);
		unsigned these = 0;

		assert_true(got <= count);
		for (size_t j = 0; j < got; j++) {
			assert_int_equal(these & 1U << out[j].conduit, 0);
			these |= 1U << out[j].conduit;
		}
		all |= these;
	}
	json_decref(friends);
	return all;
}

static void
test_everything_that_a_user_may_read_is_picked_and_nothing_else(void **state)
{
	(void)state;
	for (uint32_t count = 1; count <= 5; count++) {
		assert_int_equal(picked("alice", json_array(), count), 1 << 1 | 1 << 3);
		assert_int_equal(
		    picked("alice", json_pack("[s]", "bob"), count), 1 << 1 | 1 << 3 | 1 << 4);
		assert_int_equal(picked("bob", json_pack("[ss]", "nobody", "carol"), count),
		    1 << 2 | 1 << 3 | 1 << 4 | 1 << 5);
		assert_int_equal(picked("nobody", NULL, count), 1 << 3);
	}
}

static void
test_as_many_are_picked_as_wanted_or_all(void **state)
{
	struct request request = {.user = "alice", .count = 2};
	struct document out[SHAI_BATCH_MAX];

	(void)state;
	assert_int_equal(choose(&documents, &request, &chance, out), 2);
	request.count = SHAI_BATCH_MAX;
	assert_int_equal(choose(&documents, &request, &chance, out), 2);
	assert_int_equal(choose_any(&documents, &request, &chance, out), 5);
}

static void
test_more_friends_than_a_line_can_name_do_no_harm(void **state)
{
	json_t *friends = json_array();

	(void)state;
	for (int i = 0; i < 3 * REQUEST_LINE_MAX; i++)
		json_array_append_new(friends, json_string("bob"));
	assert_int_equal(picked("alice", friends, 1) & ~(1U << 1 | 1U << 3 | 1U << 4), 0);
}

static void
test_a_name_that_is_not_utf_8_is_no_owner(void **state)
{
	struct header header = {.visibility = VISIBILITY_PRIVATE, .owner = "\xff"};

	(void)state;
	assert_int_equal(documents_add(&documents, (struct document){6, 0}, &header), -1);
	assert_int_equal(documents.all.count, 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_everything_that_a_user_may_read_is_picked_and_nothing_else),
	    cmocka_unit_test(test_as_many_are_picked_as_wanted_or_all),
	    cmocka_unit_test(test_more_friends_than_a_line_can_name_do_no_harm),
	    cmocka_unit_test(test_a_name_that_is_not_utf_8_is_no_owner),
	};

	return cmocka_run_group_tests(tests, make_documents, release_documents);
}
