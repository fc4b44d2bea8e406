/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The list of treatments against the lists of calls in tests/calls: a release's
 * header names every call, so that a call which a newer release adds fails here
 * until somebody has decided on it. Until then it is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lwc.h"
#include "treatment.h"
#include "treatment_list.h"

#define NAMED(number, name) [number] = #name,

static const char *const names[LWC_CALLS_MAX] = {
    CALLS_NATIVE(NAMED) CALLS_OWN(NAMED) CALLS_SHARED(NAMED) CALLS_FORK(NAMED)
	CALLS_EXECUTE(NAMED) CALLS_REFUSED(NAMED)};

/* Removes what tells older forms and private names of a call from others. */
static const char *
plain(const char *name)
{
	int digits = 0;

	if (sscanf(name, "freebsd%*d_%n", &digits) == 0 && digits > 0)
		name += digits;
	return name + strspn(name, "_");
}

static bool
agrees(int number, const char *name)
{
	if (strncmp(name, "old_", 4) == 0)
		return treatment_of(number) == TREAT_UNKNOWN;
	return treatment_of(number) != TREAT_UNKNOWN &&
	       strcmp(plain(name), plain(names[number])) == 0;
}

static void
as_in_the_release(const char *path, int expected)
{
	FILE *list = fopen(path, "r");
	char name[64];
	int number, calls = 0, wrong = 0;

	assert_non_null(list);
	for (; fscanf(list, "%d %63s", &number, name) == 2; calls++) {
		if (agrees(number, name))
			continue;
		print_error("%s: %s (%d) is %s, treatment %d\n", path, name,
		    number,
		    number < LWC_CALLS_MAX && names[number] != NULL
			? names[number]
			: "not in the list",
		    treatment_of(number));
		wrong++;
	}
	assert_true(feof(list));
	fclose(list);
	assert_int_equal(wrong, 0);
	assert_int_equal(calls, expected);
}

static void
releases(void **state)
{
	(void)state;
	as_in_the_release(CALL_LISTS "/freebsd-14.txt", 480);
	as_in_the_release(CALL_LISTS "/freebsd-15.txt", 493);
}

/* What is in no release is in no list: nobody has decided on it. */
static void
nothing_else(void **state)
{
	char name[64];
	bool known[LWC_CALLS_MAX] = {false};
	int number;

	(void)state;
	for (int release = 14; release <= 15; release++) {
		FILE *list;

		snprintf(name, sizeof(name), "%s/freebsd-%d.txt", CALL_LISTS,
		    release);
		list = fopen(name, "r");
		assert_non_null(list);
		while (fscanf(list, "%d %63s", &number, name) == 2)
			known[number] = true;
		fclose(list);
	}
	for (number = -2; number < LWC_CALLS_MAX + 2; number++)
		if (number < 0 || number >= LWC_CALLS_MAX || !known[number])
			assert_int_equal(treatment_of(number), TREAT_UNKNOWN);
}

static void
decisions(void **state)
{
	static const int refused[] = {
	    0, 44, 198, 255, 318, 430, 436, 455, 507, 592, 597};
	static const int processes[] = {2, 66, 251, 518};
	static const int programs[] = {59, 415, 492};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(treatment_of(refused[i]), TREAT_REFUSE);
	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]); i++)
		assert_int_equal(treatment_of(processes[i]), TREAT_FORK);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		assert_int_equal(treatment_of(programs[i]), TREAT_EXECUTE);
	assert_int_equal(treatment_of(3), TREAT_NATIVE);
	assert_int_equal(treatment_of(1), TREAT_OWN);
}

static void
registered(void **state)
{
	(void)state;
	assert_int_equal(treatment_of(210), TREAT_UNKNOWN);
	treatment_register(210, true);
	assert_int_equal(treatment_of(210), TREAT_OWN);
	assert_int_equal(treatment_of(211), TREAT_UNKNOWN);
	treatment_register(210, false);
	assert_int_equal(treatment_of(210), TREAT_UNKNOWN);
	treatment_register(-1, true); /* no call has it: nothing happens */
	treatment_register(LWC_CALLS_MAX, true);
	assert_int_equal(treatment_of(-1), TREAT_UNKNOWN);
	assert_int_equal(treatment_of(LWC_CALLS_MAX), TREAT_UNKNOWN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(releases),
	    cmocka_unit_test(nothing_else),
	    cmocka_unit_test(decisions),
	    cmocka_unit_test(registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
