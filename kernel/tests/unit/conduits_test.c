/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tree of conduits against a plain table, and its depth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "conduits.h"

static struct conduit_node *
node(uint64_t device, uint64_t file, uint32_t rights)
{
	struct conduit_node *new = calloc(1, sizeof(*new));

	assert_non_null(new);
	new->conduit = (struct shai_conduit){
	    .device = device, .file = file, .rights = rights};
	return new;
}

static void
add(struct conduit_tree *tree, uint64_t device, uint64_t file, uint32_t rights)
{
	free(conduits_add(tree, node(device, file, rights)));
}

static size_t
empty(struct conduit_tree *tree)
{
	struct conduit_node *taken;
	size_t count = 0;

	for (; (taken = conduits_take(tree)) != NULL; count++)
		free(taken);
	return count;
}

static void
rights_add_up(void **state)
{
	struct conduit_tree tree = RB_INITIALIZER(&tree);

	(void)state;
	assert_false(conduits_cover(&tree, 1, 2, SHAI_CONDUIT_READ));
	add(&tree, 1, 2, SHAI_CONDUIT_READ);
	assert_true(conduits_cover(&tree, 1, 2, SHAI_CONDUIT_READ));
	assert_false(conduits_cover(&tree, 1, 2, SHAI_CONDUIT_WRITE));
	assert_false(conduits_cover(&tree, 2, 1, SHAI_CONDUIT_READ));
	assert_false(conduits_cover(&tree, 1, 3, SHAI_CONDUIT_READ));
	/* A descriptor that can neither read nor write is never granted. */
	assert_false(conduits_cover(&tree, 1, 2, 0));
	add(&tree, 1, 2, SHAI_CONDUIT_WRITE);
	assert_true(conduits_cover(
	    &tree, 1, 2, SHAI_CONDUIT_READ | SHAI_CONDUIT_WRITE));
	assert_int_equal(empty(&tree), 1);
	assert_false(conduits_cover(&tree, 1, 2, SHAI_CONDUIT_READ));
}

static uint64_t
next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

#define FILES 64

static void
like_a_table(void **state)
{
	struct conduit_tree tree = RB_INITIALIZER(&tree);
	uint32_t table[2][FILES] = {{0}};
	uint64_t random = 88172645463325252u;
	size_t expected = 0;

	(void)state;
	for (int i = 0; i < 500; i++) {
		uint64_t device = next(&random) % 2,
			 file = next(&random) % FILES;
		uint32_t rights = (uint32_t)(next(&random) % 3 + 1);

		add(&tree, device, file, rights);
		table[device][file] |= rights;
		device = next(&random) % 2;
		file = next(&random) % FILES;
		assert_int_equal(conduits_cover(&tree, device, file, rights),
		    (table[device][file] & rights) == rights);
	}
	for (size_t i = 0; i < FILES; i++)
		expected +=
		    (size_t)(table[0][i] != 0) + (size_t)(table[1][i] != 0);
	assert_int_equal(empty(&tree), expected);
}

static unsigned
depth(const struct conduit_node *from)
{
	unsigned left, right;

	if (from == NULL)
		return 0;
	left = depth(RB_LEFT(from, link));
	right = depth(RB_RIGHT(from, link));
	return 1 + (left > right ? left : right);
}

/* In the worst order there is: a red-black tree is at most twice as deep as
 * needed. */
static void
logarithmic(void **state)
{
	struct conduit_tree tree = RB_INITIALIZER(&tree);

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		add(&tree, 1, i, SHAI_CONDUIT_READ);
	assert_in_range(depth(RB_ROOT(&tree)), 14, 28);
	assert_int_equal(empty(&tree), 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rights_add_up),
	    cmocka_unit_test(like_a_table),
	    cmocka_unit_test(logarithmic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
