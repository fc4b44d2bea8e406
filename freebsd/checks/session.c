/* SPDX-License-Identifier: BSD-2-Clause */
#include "session.h"

#include <sys/signal.h>

#include "check.h"

struct lwc_spec
session_spec(void)
{
	struct lwc_spec spec = plain_spec();

	spec.flags = LWC_MONITORED;
	return spec;
}

void
run_session(int context)
{
	struct lwc_event event;

	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	while (event.kind == LWC_EVENT_REDIRECTED)
		REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 0, event.error, &event), 0);
}

_Noreturn void
end_session(void)
{
	struct lwc_event event;

	(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	leave(1);
}

sigset_t
only(int number)
{
	sigset_t set = {{0}};

	set.__bits[0] = 1u << (number - 1);
	return set;
}

void
block(int number)
{
	sigset_t set = only(number);

	REQUIRE_EQUAL(CALL3(SYS_sigprocmask, SIG_BLOCK, &set, NULL), 0);
}

volatile int handled;

static void
count_signal(int number)
{
	(void)number;
	handled++;
}

void
handle(int number)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, number, &action, NULL), 0);
}

void
pause_for(long milliseconds)
{
	const struct timespec delay = {milliseconds / 1000, milliseconds % 1000 * 1000000};

	(void)CALL2(SYS_nanosleep, &delay, NULL);
}
