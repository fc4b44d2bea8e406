/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs the checks, one line each, and says how many passed and failed. With the arguments
 * "only WORD..." it runs those whose names contain every word, and measures nothing.
 * Exit status 0 when all passed.
 */
#include <sys/signal.h>
#include <sys/wait.h>

#include "check.h"

static const char *const counted[] = {
    "shai.count.contexts", "shai.count.files", "shai.count.processes", "shai.count.channels"};
#define COUNTED (sizeof(counted) / sizeof(counted[0]))

const char *own_path;

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

void
ignore_signal(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = SIG_IGN;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, number, &action, NULL), 0);
}

_Noreturn void
execute(const char *argument)
{
	const char *arguments[] = {own_path, argument, NULL}, *environment[] = {NULL};

	(void)CALL3(SYS_execve, own_path, arguments, environment);
	leave(30);
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

/*
 * Returns a count as soon as it is what it was, or after ten seconds: the kernel closes what was on
 * its way between sockets some time after the processes have ended.
 */
static int64_t
settled(const char *name, int64_t wanted)
{
	const struct timespec delay = {0, 10000000};
	uint64_t end = nanoseconds() + 10000000000u;
	int64_t now;

	while ((now = read_variable(name)) != wanted && nanoseconds() < end)
		(void)CALL2(SYS_nanosleep, &delay, NULL);
	return now;
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
		after = settled(counted[i], before[i]);
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

static bool
contains(const char *text, const char *part)
{
	for (; text_length(text) >= text_length(part); text++)
		if (memcmp(text, part, text_length(part)) == 0)
			return true;
	return false;
}

static bool
is_chosen(const char *name, const char *const *words)
{
	for (; *words != NULL; words++)
		if (!contains(name, *words))
			return false;
	return true;
}

/* The kernel passes the address of the argument count; the arguments follow it. */
_Noreturn void start(const long *block);

void
start(const long *block)
{
	static const struct check *const all[] = {context_checks, resource_checks, redirect_checks,
	    behalf_checks, overlay_checks, audit_checks, process_checks, channel_checks,
	    transfer_checks, unload_checks, register_checks, isolation_checks, random_checks,
	    limit_checks, share_checks, layer_checks, shared_memory_checks, trace_checks,
	    stress_checks, attack_checks, arbitrary_checks, stop_checks};
	const char *const *arguments = (const char *const *)(block + 1);
	const char *const *words = arguments + block[0]; /* none */
	int passed = 0, failed = 0;

	if (block[0] > 2 && text_equal(arguments[1], "only"))
		words = arguments + 2;
	else if (block[0] > 1)
		leave(executed(arguments[1]));
	own_path = arguments[0];
	if (!lookup_calls()) {
		say("the module is not loaded: there is no shai.syscall\n");
		leave(2);
	}
	if (*words != NULL && text_equal(*words, "figures")) {
		print_figures();
		leave(0);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct check *check = all[i]; check->name != NULL; check++)
			if (is_chosen(check->name, words))
				*(run(check) ? &passed : &failed) += 1;
	if (*words == NULL)
		print_figures();
	say_number(passed);
	say(" passed, ");
	say_number(failed);
	say(" failed\n");
	leave(failed == 0 ? 0 : 1);
}
