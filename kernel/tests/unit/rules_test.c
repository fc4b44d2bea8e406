/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arguments that the module refuses before it uses anything of the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rules.h"

#define PAGE 4096u
#define MINIMUM 0x1000u
#define MAXIMUM 0x800000000000u

static void
steps(void **state)
{
	static const struct {
		enum lwc_state from;
		enum lwc_step step;
		enum lwc_state to;
		int error;
	} table[] = {
	    {LWC_STATE_CREATED, LWC_STEP_ENTER, LWC_STATE_CURRENT, 0},
	    {LWC_STATE_SUSPENDED, LWC_STEP_ENTER, LWC_STATE_CURRENT, 0},
	    {LWC_STATE_TRAPPED, LWC_STEP_ENTER, LWC_STATE_CURRENT, 0},
	    {LWC_STATE_CURRENT, LWC_STEP_ENTER, LWC_STATE_CURRENT, EBUSY},
	    {LWC_STATE_DEAD, LWC_STEP_ENTER, LWC_STATE_DEAD, ESRCH},
	    {LWC_STATE_CURRENT, LWC_STEP_LEAVE, LWC_STATE_SUSPENDED, 0},
	    {LWC_STATE_CREATED, LWC_STEP_LEAVE, LWC_STATE_CREATED, ESRCH},
	    {LWC_STATE_SUSPENDED, LWC_STEP_LEAVE, LWC_STATE_SUSPENDED, ESRCH},
	    {LWC_STATE_TRAPPED, LWC_STEP_LEAVE, LWC_STATE_TRAPPED, ESRCH},
	    {LWC_STATE_DEAD, LWC_STEP_LEAVE, LWC_STATE_DEAD, ESRCH},
	    {LWC_STATE_CURRENT, LWC_STEP_TRAP, LWC_STATE_TRAPPED, 0},
	    {LWC_STATE_CREATED, LWC_STEP_TRAP, LWC_STATE_CREATED, ESRCH},
	    {LWC_STATE_SUSPENDED, LWC_STEP_TRAP, LWC_STATE_SUSPENDED, ESRCH},
	    {LWC_STATE_TRAPPED, LWC_STEP_TRAP, LWC_STATE_TRAPPED, ESRCH},
	    {LWC_STATE_DEAD, LWC_STEP_TRAP, LWC_STATE_DEAD, ESRCH},
	    {LWC_STATE_CREATED, LWC_STEP_DISCARD, LWC_STATE_DEAD, 0},
	    {LWC_STATE_SUSPENDED, LWC_STEP_DISCARD, LWC_STATE_DEAD, 0},
	    {LWC_STATE_TRAPPED, LWC_STEP_DISCARD, LWC_STATE_DEAD, 0},
	    {LWC_STATE_CURRENT, LWC_STEP_DISCARD, LWC_STATE_CURRENT, EBUSY},
	    {LWC_STATE_DEAD, LWC_STEP_DISCARD, LWC_STATE_DEAD, ESRCH},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		enum lwc_state now = table[i].from;

		assert_int_equal(
		    rules_step(&now, table[i].step), table[i].error);
		assert_int_equal(now, table[i].to);
	}
	assert_true(rules_is_source(LWC_STATE_CREATED));
	assert_true(rules_is_source(LWC_STATE_SUSPENDED));
	assert_false(rules_is_source(LWC_STATE_TRAPPED));
	assert_false(rules_is_source(LWC_STATE_CURRENT));
	assert_false(rules_is_source(LWC_STATE_DEAD));
}

static void
specifications(void **state)
{
	const struct lwc_spec good = {
	    .version = LWC_VERSION, .source = LWC_SELF, .monitor = LWC_SELF};
	struct lwc_spec spec = good;

	(void)state;
	assert_int_equal(rules_check_spec(&spec), 0);
	spec.version = LWC_VERSION + 1;
	assert_int_equal(rules_check_spec(&spec), EPROTONOSUPPORT);
	spec = good;
	spec.flags = 4;
	assert_int_equal(rules_check_spec(&spec), EINVAL);
	spec = good;
	spec.source = LWC_CALLER;
	assert_int_equal(rules_check_spec(&spec), EBADF);
	spec = good;
	spec.monitor = LWC_CALLER; /* not looked at without LWC_MONITORED */
	assert_int_equal(rules_check_spec(&spec), 0);
	spec.flags = LWC_MONITORED;
	assert_int_equal(rules_check_spec(&spec), EBADF);
	spec = good;
	spec.range_count = LWC_RANGES_MAX;
	spec.descriptor_count = LWC_DESCRIPTORS_MAX;
	assert_int_equal(rules_check_spec(&spec), 0);
	spec.range_count++;
	assert_int_equal(rules_check_spec(&spec), E2BIG);
	spec.range_count--;
	spec.descriptor_count++;
	assert_int_equal(rules_check_spec(&spec), E2BIG);
}

static void
ranges(void **state)
{
	static const struct {
		struct lwc_range range;
		int error;
	} table[] = {
	    {{.start = MINIMUM, .length = PAGE}, 0},
	    {{.start = MAXIMUM - PAGE, .length = PAGE, .mode = LWC_OMIT}, 0},
	    {{.start = MINIMUM, .length = MAXIMUM - MINIMUM, .mode = LWC_SHARE},
		0},
	    {{.start = 0, .length = PAGE}, EINVAL},
	    {{.start = MINIMUM, .length = 0}, EINVAL},
	    {{.start = MINIMUM + 1, .length = PAGE}, EINVAL},
	    {{.start = MINIMUM, .length = PAGE + 1}, EINVAL},
	    {{.start = MAXIMUM, .length = PAGE}, EINVAL},
	    {{.start = MAXIMUM - PAGE, .length = 2 * PAGE}, EINVAL},
	    {{.start = 2 * PAGE, .length = UINT64_MAX - PAGE + 1}, EINVAL},
	    {{.start = MINIMUM, .length = PAGE, .mode = 3}, EINVAL},
	    {{.start = MINIMUM, .length = PAGE, .reserved = 1}, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(
		    rules_check_range(&table[i].range, MINIMUM, MAXIMUM, PAGE),
		    table[i].error);
}

static void
descriptors(void **state)
{
	static const struct {
		struct lwc_descriptors descriptors;
		int error;
	} table[] = {
	    {{.first = 0, .last = 0}, 0},
	    {{.first = 3, .last = INT32_MAX, .mode = LWC_OMIT}, 0},
	    {{.first = -1, .last = 3}, EINVAL},
	    {{.first = 4, .last = 3}, EINVAL},
	    {{.first = 3, .last = 3, .mode = 9}, EINVAL},
	    {{.first = 3, .last = 3, .reserved = 1}, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(rules_check_descriptors(&table[i].descriptors),
		    table[i].error);
}

static void
messages_and_restrictions(void **state)
{
	struct lwc_message message = {.flags = LWC_CALL, .error = EACCES};
	struct lwc_restriction restriction = {.rights = LWC_RIGHTS_ALL};

	(void)state;
	assert_int_equal(rules_check_message(&message), 0);
	message.error = -1; /* ERESTART */
	assert_int_equal(rules_check_message(&message), EINVAL);
	message.error = 0x10000;
	assert_int_equal(rules_check_message(&message), EINVAL);
	message = (struct lwc_message){.flags = 2};
	assert_int_equal(rules_check_message(&message), EINVAL);

	assert_int_equal(rules_check_restriction(5, &restriction), 0);
	restriction.rights = LWC_RIGHTS_ALL + 1;
	assert_int_equal(rules_check_restriction(5, &restriction), EINVAL);
	restriction = (struct lwc_restriction){.flags = LWC_CAPABILITY_MODE};
	assert_int_equal(rules_check_restriction(LWC_SELF, &restriction), 0);
	assert_int_equal(rules_check_restriction(5, &restriction), EINVAL);
	restriction.flags = LWC_MONITORED;
	assert_int_equal(
	    rules_check_restriction(LWC_SELF, &restriction), EINVAL);
}

static void
overlays(void **state)
{
	const struct lwc_overlay good = {.start = MINIMUM,
	    .length = PAGE,
	    .here = 0x10000,
	    .flags = LWC_OVERLAY_WRITE};
	struct lwc_overlay overlay = good;

	(void)state;
	assert_int_equal(
	    rules_check_overlay(&overlay, MINIMUM, MAXIMUM, PAGE), 0);
	overlay.here = MAXIMUM;
	assert_int_equal(
	    rules_check_overlay(&overlay, MINIMUM, MAXIMUM, PAGE), EINVAL);
	overlay = good;
	overlay.start = MAXIMUM;
	assert_int_equal(
	    rules_check_overlay(&overlay, MINIMUM, MAXIMUM, PAGE), EINVAL);
	overlay = good;
	overlay.flags = 2;
	assert_int_equal(
	    rules_check_overlay(&overlay, MINIMUM, MAXIMUM, PAGE), EINVAL);
	overlay = good;
	overlay.reserved = 1;
	assert_int_equal(
	    rules_check_overlay(&overlay, MINIMUM, MAXIMUM, PAGE), EINVAL);
}

static void
conduits(void **state)
{
	struct shai_conduit conduit = {.rights = SHAI_CONDUIT_READ};

	(void)state;
	assert_int_equal(rules_check_conduit(&conduit), 0);
	conduit.rights = 0;
	assert_int_equal(rules_check_conduit(&conduit), EINVAL);
	conduit.rights = 4;
	assert_int_equal(rules_check_conduit(&conduit), EINVAL);
	conduit =
	    (struct shai_conduit){.rights = SHAI_CONDUIT_WRITE, .reserved = 1};
	assert_int_equal(rules_check_conduit(&conduit), EINVAL);
}

static void
grants(void **state)
{
	(void)state;
	assert_true(rules_may_grant(false, false, false));
	assert_true(rules_may_grant(false, false, true));
	assert_true(rules_may_grant(false, true, true));
	assert_false(rules_may_grant(false, true, false));
	/* Whoever is monitored grants nothing, not even as a monitor. */
	for (int i = 0; i < 4; i++)
		assert_false(rules_may_grant(true, i % 2 == 0, i / 2 == 0));
}

static void
call_sets(void **state)
{
	uint64_t words[LWC_CALL_WORDS] = {0};

	(void)state;
	words[0] = 1;
	words[LWC_CALL_WORDS - 1] = (uint64_t)1 << 63;
	assert_true(rules_call_in(words, 0));
	assert_false(rules_call_in(words, 1));
	assert_false(rules_call_in(words, LWC_CALLS_MAX - 2));
	assert_true(rules_call_in(words, LWC_CALLS_MAX - 1));
	/* A call number that the set cannot contain is redirected. */
	assert_true(rules_call_in(words, LWC_CALLS_MAX));
	assert_true(rules_call_in(words, -1));
}

static void
releases(void **state)
{
	(void)state;
	assert_true(rules_same_release(1403000, 1403000));
	assert_true(rules_same_release(1403000, 1403503));
	assert_false(rules_same_release(1403503, 1404000));
	assert_false(rules_same_release(1403000, 1402504));
	assert_false(rules_same_release(1500068, 1400097));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(steps),
	    cmocka_unit_test(specifications),
	    cmocka_unit_test(ranges),
	    cmocka_unit_test(descriptors),
	    cmocka_unit_test(messages_and_restrictions),
	    cmocka_unit_test(overlays),
	    cmocka_unit_test(conduits),
	    cmocka_unit_test(grants),
	    cmocka_unit_test(call_sets),
	    cmocka_unit_test(releases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
