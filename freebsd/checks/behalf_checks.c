/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls on behalf of another context.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/unistd.h>

#include "check.h"
#include "treatment_list.h"

/*
 * The monitor opens for the confined context: with its own credentials, into the
 * other's table.
 */
static void
open_on_behalf(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long opened;
	int context;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		int descriptor = open_file("/dev/zero", O_RDONLY, 0);
		char byte = 'x';

		REQUIRE(descriptor >= 0);
		REQUIRE_EQUAL(CALL3(SYS_read, descriptor, &byte, 1), 1);
		REQUIRE_EQUAL(byte, 0);
		leave(0);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_open);
	/*
	 * With the context's credentials the call is refused as before. The path is in
	 * its memory.
	 */
	REQUIRE_EQUAL(lwc_syscall(LWC_CALLER, LWC_USE_MEMORY | LWC_USE_CREDENTIALS, SYS_open,
			  (long)event.arguments[0], O_RDONLY, 0),
	    -ECAPMODE);
	opened = lwc_syscall(LWC_CALLER, LWC_USE_MEMORY | LWC_USE_FILES, SYS_open,
	    (long)event.arguments[0], O_RDONLY, 0);
	REQUIRE(opened >= 0);
	REQUIRE_EQUAL(CALL1(SYS_dup, 0), context + 1); /* not in our table */
	(void)lwc_answer(context, (uint64_t)opened, 0, &event);
	leave(1);
}

static void
memory_on_behalf(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	int ends[2];

	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	page[0] = 'a';
	if (create(&spec, &event))
		leave(1);
	page[0] = 'b';
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_MEMORY, SYS_write, ends[1], (long)page, 1), 1);
	REQUIRE_EQUAL(CALL3(SYS_read, ends[0], page, 1), 1);
	REQUIRE_EQUAL(page[0], 'a');
	/* Map into the other's memory and unmap there: our memory stays. */
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_MEMORY, SYS_munmap, (long)page, 4096, 0), 0);
	REQUIRE_EQUAL(page[0], 'a');
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_MEMORY, SYS_write, ends[1], (long)page, 1),
	    -EFAULT);
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_CREDENTIALS, SYS_setuid, 1001, 0, 0), 0);
	REQUIRE_EQUAL(CALL0(SYS_getuid), 0);
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_CREDENTIALS, SYS_getuid, 0, 0, 0), 1001);
}

#define NATIVE(number, name) [number] = true,

/* As a user without privileges: a call that gets through by mistake is one that panics. */
static void
refused_on_behalf(void)
{
	static const bool native[LWC_CALLS_MAX] = {CALLS_NATIVE(NATIVE)};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context, let_through = 0;

	REQUIRE_EQUAL(lwc_syscall(3, LWC_USE_FILES, SYS_getpid, 0, 0, 0), -ESRCH);
	REQUIRE_EQUAL(CALL1(SYS_setuid, 1001), 0);
	ignore_signal(SIGSYS);
	if (create(&spec, &event))
		leave(1);
	context = event.descriptor;
	for (int number = -1; number <= LWC_CALLS_MAX; number++) {
		if (number >= 0 && number < LWC_CALLS_MAX && native[number])
			continue;
		if (lwc_syscall(context, LWC_USE_FILES, number, 0, 0, 0) == -EINVAL)
			continue;
		say_number(number);
		say(" is made on behalf\n");
		let_through++;
	}
	REQUIRE_EQUAL(let_through, 0);
	REQUIRE_EQUAL(lwc_syscall(context, LWC_USE_FILES, 100000, 0, 0, 0), -EINVAL);
	REQUIRE_EQUAL(lwc_syscall(context, 0, SYS_getpid, 0, 0, 0), -EINVAL);
	REQUIRE_EQUAL(lwc_syscall(context, 0x100, SYS_getpid, 0, 0, 0), -EINVAL);
	REQUIRE_EQUAL(lwc_syscall(LWC_SELF, LWC_USE_FILES, SYS_getpid, 0, 0, 0), -EBUSY);
	REQUIRE_EQUAL(CALL4(calls.on_behalf, context, LWC_USE_FILES, SYS_getpid, NULL), -EFAULT);
}

/*
 * The call closes the last descriptor of the context whose memory it uses, and which
 * has ours in the meantime: that context is discarded after the call, not before.
 */
static void
target_closed_on_behalf(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	int context;

	page[0] = 'a';
	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		(void)open_file("/dev/zero", O_RDONLY, 0);
		leave(1);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
	REQUIRE_EQUAL(lwc_syscall(LWC_CALLER, LWC_USE_MEMORY, SYS_close, context, 0, 0), 0);
	REQUIRE_EQUAL(page[0], 'a');
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
	REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 0, 0, &event), -ESRCH);
}

/*
 * The same in all ways to close a descriptor, of one's own table and of the other's, as a user
 * without privileges.
 */
static void
closed_in_every_way(void)
{
	static const int resources[] = {LWC_USE_MEMORY, LWC_USE_CREDENTIALS,
	    LWC_USE_MEMORY | LWC_USE_CREDENTIALS, LWC_USE_FILES,
	    LWC_USE_FILES | LWC_USE_MEMORY | LWC_USE_CREDENTIALS};
	static const struct lwc_descriptors share = {.first = 3, .last = 3, .mode = LWC_SHARE};
	static const struct {
		int number, first, second;
	} ways[] = {{SYS_close, 3, 0}, {SYS_dup2, 0, 3}, {SYS_close_range, 3, 3},
	    {SYS_freebsd12_closefrom, 3, 0}, {SYS_fcntl, 3, F_GETFD}};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);

	page[0] = 'a';
	for (int i = 0; i < 25; i++) {
		int use = resources[i / 5];

		REQUIRE_EQUAL(CALL3(SYS_setresuid, 1001, 1001, 0), 0);

		spec = plain_spec();
		if (create(&spec, &event)) /* 3: what is closed */
			leave(1);
		REQUIRE_EQUAL(event.descriptor, 3);
		spec.descriptors = &share;
		spec.descriptor_count = 1;
		if ((use & LWC_USE_FILES) != 0) { /* 4: has the only descriptor of 3 */
			if (create(&spec, &event))
				leave(1);
			REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
		}
		REQUIRE(lwc_syscall(event.descriptor, use, ways[i % 5].number, ways[i % 5].first,
			    ways[i % 5].second, 0) >= 0);
		REQUIRE_EQUAL(page[0], 'a');
		REQUIRE_EQUAL(CALL0(SYS_getuid), 1001);
		(void)CALL2(SYS_close_range, 3, 10);
		REQUIRE_EQUAL(CALL1(SYS_seteuid, 0), 0); /* who may read counts */
		REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
	}
}

/* A process that is killed inside a call ends with its own resources. */
static void
killed_on_behalf(void)
{
	struct {
		long seconds, nanoseconds;
	} delay = {0, 1000000};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int ready[2], never[2];
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, never, 0), 0);
	REQUIRE_EQUAL(CALL2(SYS_pipe2, ready, 0), 0);
	for (int i = 0; i < 20; i++) {
		long child = CALL0(SYS_fork);

		if (child == 0) {
			if (create(&spec, &event))
				leave(1);
			(void)CALL3(SYS_write, ready[1], "x", 1);
			(void)lwc_syscall(event.descriptor,
			    LWC_USE_FILES | LWC_USE_MEMORY | LWC_USE_CREDENTIALS, SYS_read,
			    never[0], (long)&byte, 1);
			leave(2);
		}
		REQUIRE_EQUAL(CALL3(SYS_read, ready[0], &byte, 1), 1);
		if (i % 2 == 0) /* at any moment: before the call or in it */
			(void)CALL2(SYS_nanosleep, &delay, NULL);
		REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
		REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
	}
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 0);
}

/* A redirected call cannot be made through another context instead. */
static void
no_way_around_the_monitor(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED;
	spec.redirected[SYS_getpid / 64] = (uint64_t)1 << SYS_getpid % 64;
	if (create(&spec, &event)) {
		spec = plain_spec();
		if (create(&spec, &event))
			leave(1);
		REQUIRE_EQUAL(
		    lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_getpid, 0, 0, 0), -EPERM);
		REQUIRE(lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_getppid, 0, 0, 0) > 0);
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
	leave(1);
}

static void
nothing(int number)
{
	(void)number;
}

/* A signal ends a call that waits; SA_RESTART does not repeat it. */
static void
interrupted_on_behalf(void)
{
	struct {
		long seconds, nanoseconds;
	} delay = {0, 200000000};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct sigaction action;
	long child, self = CALL0(SYS_getpid);
	int ends[2];
	char byte;

	memset(&action, 0, sizeof(action));
	action.sa_handler = nothing;
	action.sa_flags = SA_RESTART;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, SIGUSR1, &action, NULL), 0);
	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	if (create(&spec, &event))
		leave(1);
	child = CALL0(SYS_fork);
	if (child == 0) {
		/* Repeatedly, since the first signal may come before the call. */
		for (int i = 0; i < 20; i++) {
			(void)CALL2(SYS_nanosleep, &delay, NULL);
			if (CALL2(SYS_kill, self, SIGUSR1) != 0)
				leave(0);
		}
		leave(0);
	}
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_read, ends[0], (long)&byte, 1),
	    -EINTR);
	REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
	REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
}

const struct check behalf_checks[] = {
    {"open on behalf of the confined", open_on_behalf, 0},
    {"memory and credentials of another", memory_on_behalf, 0},
    {"calls refused on behalf", refused_on_behalf, 0},
    {"closed by a call on its behalf", target_closed_on_behalf, 0},
    {"closed by a call on its behalf in every way", closed_in_every_way, 0},
    {"killed in a call on behalf", killed_on_behalf, 0},
    {"no way around the monitor", no_way_around_the_monitor, 0},
    {"a signal ends a call on behalf", interrupted_on_behalf, 0},
    {NULL, NULL, 0},
};
