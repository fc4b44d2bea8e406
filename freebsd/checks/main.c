/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs the checks, one line each, and says how many passed and failed.
 * Exit status 0 when all passed.
 */
#include <sys/wait.h>

#include "check.h"

static const char *const counted[] = {
    "shai.count.contexts", "shai.count.descriptors", "shai.count.processes", "shai.count.channels"};
#define COUNTED (sizeof(counted) / sizeof(counted[0]))

void
require_equal(long got, long expected, const char *where, const char *what)
{
	if (got == expected)
		return;
	say("    ");
	say(where);
	say(": ");
	say(what);
	say(" is ");
	say_number(got);
	say(", not ");
	say_number(expected);
	say("\n");
	leave(1);
}

struct lwc_spec
plain_spec(void)
{
	return (struct lwc_spec){.version = LWC_VERSION, .source = LWC_SELF, .monitor = LWC_SELF};
}

bool
create(const struct lwc_spec *spec, struct lwc_event *event)
{
	REQUIRE_EQUAL(lwc_create(spec, event), 0);
	return event->kind != LWC_EVENT_CREATED;
}

int
wait_for(long child)
{
	int status = 0;
	long result;

	do
		result = CALL4(SYS_wait4, child, &status, 0, 0);
	while (result == -EINTR);
	if (result != child)
		return -1;
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool
run(const struct check *check)
{
	int64_t before[COUNTED], after;
	int expected = check->signal != 0 ? 256 + check->signal : 0;
	int status;
	long child;
	bool passed;

	for (size_t i = 0; i < COUNTED; i++)
		before[i] = read_variable(counted[i]);
	child = CALL0(SYS_fork);
	if (child == 0) {
		check->run();
		leave(0);
	}
	status = wait_for(child);
	passed = status == expected;
	for (size_t i = 0; i < COUNTED; i++) {
		after = read_variable(counted[i]);
		if (after == before[i])
			continue;
		say("    left behind: ");
		say(counted[i]);
		say(" ");
		say_number(after);
		say("\n");
		passed = false;
	}
	say(passed ? "ok      " : "NOT OK  ");
	say(check->name);
	if (status != expected) {
		say(" (status ");
		say_number(status);
		say(")");
	}
	say("\n");
	return passed;
}

/* The kernel passes the address of the argument count; the arguments follow it. */
_Noreturn void start(const long *block);

void
start(const long *block)
{
	static const struct check *const all[] = {context_checks, resource_checks, redirect_checks,
	    behalf_checks, process_checks, channel_checks, stress_checks};
	int passed = 0, failed = 0;

	if (block[0] > 1)
		leave(executed((const char *)block[2]));
	if (!lookup_calls()) {
		say("the module is not loaded: there is no shai.syscall\n");
		leave(2);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct check *check = all[i]; check->name != NULL; check++)
			*(run(check) ? &passed : &failed) += 1;
	print_figures();
	say_number(passed);
	say(" passed, ");
	say_number(failed);
	say(" failed\n");
	leave(failed == 0 ? 0 : 1);
}
