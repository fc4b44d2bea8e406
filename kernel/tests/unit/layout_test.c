/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The binary interface: no structure has padding, so that nothing of the
 * kernel's stack is copied out, and 14 and 15, amd64 and arm64 agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lwc.h"

static void
sizes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct lwc_range), 24);
	assert_int_equal(sizeof(struct lwc_descriptors), 16);
	assert_int_equal(sizeof(struct lwc_spec), 40 + 8 * LWC_CALL_WORDS);
	assert_int_equal(offsetof(struct lwc_spec, ranges), 16);
	assert_int_equal(offsetof(struct lwc_spec, redirected), 40);
	assert_int_equal(sizeof(struct lwc_event), 32 + 8 * LWC_ARGUMENTS);
	assert_int_equal(offsetof(struct lwc_event, call), 24);
	assert_int_equal(sizeof(struct lwc_message), 16);
	assert_int_equal(
	    sizeof(struct lwc_restriction), 8 + 8 * LWC_CALL_WORDS);
	assert_int_equal(sizeof(struct lwc_overlay), 32);
	assert_int_equal(sizeof(struct shai_conduit), 24);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sizes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
