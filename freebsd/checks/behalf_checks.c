/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls on behalf of another context, and overlays of its memory.
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

static void
overlay_follows(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	volatile char *page = map_pages(4);
	char *here = (char *)0x200000000;
	struct lwc_overlay overlay = {.start = (uint64_t)page,
	    .length = 4 * 4096,
	    .here = (uint64_t)here,
	    .flags = LWC_OVERLAY_WRITE};
	int context;

	page[0] = page[4096] = 'a'; /* the rest has never been touched */
	if (create(&spec, &event)) {
		page[0] = 'b';
		page[8192] = 'c';
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		REQUIRE_EQUAL(page[4096], 'd');
		REQUIRE_EQUAL(page[12288], 'e');
		page[8192] = 'f';
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), 0);
	REQUIRE_EQUAL(here[0], 'a');
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(here[0], 'b');
	REQUIRE_EQUAL(here[8192], 'c');
	REQUIRE_EQUAL(page[0], 'a');
	here[4096] = 'd';
	here[12288] = 'e';
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(here[8192], 'f');
	REQUIRE_EQUAL(page[8192], 0);
	/* The mapping stays when the context is discarded. */
	REQUIRE_EQUAL(CALL1(SYS_close, context), 0);
	REQUIRE_EQUAL(here[8192], 'f');
}

static void
overlay_errors(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(4);
	struct lwc_overlay overlay = {
	    .start = (uint64_t)page, .length = 4 * 4096, .here = 0x200000000};
	struct lwc_overlay bad;
	int context;

	REQUIRE_EQUAL(CALL2(SYS_munmap, page + 8192, 4096), 0);
	if (create(&spec, &event))
		leave(1);
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), -EFAULT); /* a hole; nothing stays mapped */
	overlay.length = 4096;
	REQUIRE_EQUAL(lwc_overlay(LWC_SELF, &overlay), -EBUSY);
	REQUIRE_EQUAL(lwc_overlay(context, NULL), -EFAULT);
	bad = overlay;
	bad.start += 1;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.length = (uint64_t)-4096;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.flags = 8;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.here = (uint64_t)page;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EEXIST);
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), 0);
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), -EEXIST);
	/* Not executable, and not writable unless requested. */
	REQUIRE_EQUAL(CALL3(SYS_mprotect, overlay.here, 4096, PROT_READ | PROT_WRITE), -EACCES);
	REQUIRE_EQUAL(CALL3(SYS_mprotect, overlay.here, 4096, PROT_READ | PROT_EXEC), -EACCES);
}

static void
overlay_is_read_only(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	struct lwc_overlay overlay = {.start = (uint64_t)page, .length = 4096, .here = 0x200000000};

	page[0] = 'a';
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), 0);
	REQUIRE_EQUAL(*(char *)overlay.here, 'a');
	*(volatile char *)overlay.here = 'b';
	leave(0);
}

/* A file that is mapped for writing cannot be overlaid, in whatever file system. */
static void
no_overlay_of_a_file(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct lwc_overlay overlay = {
	    .length = 4096, .here = 0x200000000, .flags = LWC_OVERLAY_WRITE};
	int file = open_file("/tmp/overlaid", O_RDWR | O_CREAT, 0600);
	char *page;

	REQUIRE_EQUAL(CALL2(SYS_ftruncate, file, 4096), 0);
	page = (char *)CALL6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	page[0] = 'a';
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/overlaid"), 0);
	if (create(&spec, &event))
		leave(1);
	overlay.start = (uint64_t)page;
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), -EOPNOTSUPP);
	overlay.flags = 0;
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), -EOPNOTSUPP);
}

/* A copy of a context with an overlay does not have the overlay. */
static void
overlay_is_not_inherited(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	struct lwc_overlay overlay = {.start = (uint64_t)page, .length = 4096, .here = 0x200000000};

	page[0] = 'a';
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), 0);
	if (create(&spec, &event)) {
		*(volatile char *)overlay.here; /* ends the process */
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, 0, &event);
	leave(1);
}

const struct check behalf_checks[] = {
    {"open on behalf of the confined", open_on_behalf, 0},
    {"memory and credentials of another", memory_on_behalf, 0},
    {"calls refused on behalf", refused_on_behalf, 0},
    {"closed by a call on its behalf", target_closed_on_behalf, 0},
    {"no way around the monitor", no_way_around_the_monitor, 0},
    {"a signal ends a call on behalf", interrupted_on_behalf, 0},
    {"overlay follows both ways", overlay_follows, 0},
    {"errors of lwc_overlay", overlay_errors, 0},
    {"overlay is read-only unless asked", overlay_is_read_only, SIGSEGV},
    {"no overlay of a file mapped for writing", no_overlay_of_a_file, 0},
    {"overlay is not inherited", overlay_is_not_inherited, SIGSEGV},
    {NULL, NULL, 0},
};
