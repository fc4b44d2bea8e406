/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Redirection of refused calls to the monitor.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>

#include "check.h"

static void
set_bit(struct lwc_spec *spec, int number)
{
	spec->redirected[number / 64] |= (uint64_t)1 << (number % 64);
}

static struct lwc_spec
confined_spec(void)
{
	struct lwc_spec spec = plain_spec();

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	return spec;
}

static void
open_is_redirected(void)
{
	struct lwc_spec spec = confined_spec();
	struct lwc_event event;
	uint64_t id;
	int context;

	if (create(&spec, &event)) {
		static const char text[] = "/dev/null";

		REQUIRE_EQUAL(open_file(text, O_RDWR, 0), 42);
		REQUIRE_EQUAL(open_file(text, O_RDWR, 0), -EACCES);
		REQUIRE_EQUAL(open_file(text, O_RDWR, 0), -ECAPMODE);
		(void)lwc_switch(LWC_SELF, 0, 0, &event); /* EBUSY */
		REQUIRE_EQUAL(CALL0(SYS_getpid) > 0, 1);  /* allowed: not redirected */
		leave(0);
	}
	context = event.descriptor;
	id = event.context;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	for (int i = 0; i < 3; i++) {
		REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
		REQUIRE_EQUAL(event.context, id);
		REQUIRE_EQUAL(event.call, SYS_open);
		REQUIRE_EQUAL(event.error, ECAPMODE);
		REQUIRE_EQUAL(event.arguments[1], O_RDWR);
		REQUIRE_EQUAL(lwc_answer(i == 1 ? context : LWC_CALLER, 42,
				  i == 0   ? 0
				  : i == 1 ? EACCES
					   : event.error,
				  &event),
		    0);
	}
	leave(1);
}

/*
 * With a result of two registers, and with vector registers and flags across the
 * redirected call.
 */
static void
registers_survive(void)
{
	struct lwc_spec spec = confined_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
#if defined(__x86_64__)
		uint64_t vector[4] = {1, 2, 3, 4}, back[4] = {0}, kept = 0x1122334455667788;
		long result;

		__asm__ volatile(
		    "vmovdqu (%3), %%ymm7\n"
		    "mov %4, %%rbx\n"
		    "mov %%rbx, %%r12\n"
		    "syscall\n"
		    "vmovdqu %%ymm7, (%5)\n"
		    "mov %%r12, %1\n"
		    : "=a"(result), "=m"(kept)
		    : "0"(SYS_open), "r"(vector), "r"(kept), "r"(back), "D"("/dev/null"), "S"(0)
		    : "rcx", "r11", "rbx", "r12", "memory", "xmm7", "cc", "rdx");
		REQUIRE_EQUAL(result, 42);
		REQUIRE_EQUAL(kept, 0x1122334455667788);
		REQUIRE(memcmp(vector, back, sizeof(vector)) == 0);
#endif
		leave(0);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
#if defined(__x86_64__)
	{
		uint64_t vector[4] = {9, 9, 9, 9}, found[4];

		/* Nothing of the other's registers is here, and ours do not get there. */
		__asm__ volatile("vmovdqu %%ymm7, (%0)" : : "r"(found) : "memory");
		REQUIRE(found[0] != 1 || found[3] != 4);
		__asm__ volatile("vmovdqu (%0), %%ymm7" : : "r"(vector) : "xmm7");
	}
#endif
	REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 42, 0, &event), 0);
	leave(1);
}

static void
set_is_redirected(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context;

	spec.flags = LWC_MONITORED;
	set_bit(&spec, SYS_getpid);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL0(SYS_getpid), 4711);
		REQUIRE_EQUAL(CALL0(SYS_getppid), 4712); /* added in the meantime */
		/* Through the indirect call, too. */
		REQUIRE_EQUAL(CALL1(SYS_syscall, SYS_getpid), 4713);
		leave(0);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_getpid);
	REQUIRE_EQUAL(event.error, EPERM);
	REQUIRE_EQUAL(
	    lwc_restrict(
		context, &(struct lwc_restriction){.rights = LWC_RIGHTS_ALL,
			     .redirected = {[SYS_getppid / 64] = (uint64_t)1 << SYS_getppid % 64}}),
	    0);
	REQUIRE(CALL0(SYS_getpid) != 4711); /* the monitor itself is not redirected */
	REQUIRE_EQUAL(lwc_answer(context, 4711, 0, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_getppid);
	REQUIRE_EQUAL(lwc_answer(context, 4712, 0, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_getpid);
	REQUIRE_EQUAL(lwc_answer(context, 4713, 0, &event), 0);
	leave(1);
}

static void
processes_are_redirected(void)
{
	static const int numbers[] = {
	    SYS_fork, SYS_vfork, SYS_rfork, SYS_execve, SYS_fexecve, SYS___mac_execve};
	const size_t count = sizeof(numbers) / sizeof(numbers[0]);
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED;
	if (create(&spec, &event)) {
		for (size_t i = 0; i < count; i++)
			REQUIRE_EQUAL(CALL3(numbers[i], 0, 0, 0), -EPERM);
		leave(0);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	for (size_t i = 0; i < count; i++) {
		REQUIRE_EQUAL(event.call, numbers[i]);
		(void)lwc_answer(LWC_CALLER, 0, event.error, &event);
	}
	leave(1);
}

/* A number that the set cannot contain goes to the monitor. */
static void
unknown_call(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL0(5000), -ENOSYS);
		leave(0);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.call, 5000);
	REQUIRE_EQUAL(event.error, EPERM);
	(void)lwc_answer(LWC_CALLER, 0, ENOSYS, &event);
	leave(1);
}

/*
 * A monitor whose own call is redirected cannot be asked: the call fails with its own
 * error.
 */
static void
monitor_is_busy(void)
{
	struct lwc_spec spec = confined_spec();
	static const struct lwc_descriptors share = {.first = 3, .last = 5, .mode = LWC_SHARE};
	struct lwc_event event;
	int inner, middle;

	/* middle, monitored by the root, creates inner and is its monitor. */
	if (create(&spec, &event)) {
		int result = open_file("/", O_RDONLY, 0);

		REQUIRE_EQUAL(result, -EACCES);
		leave(1);
	}
	middle = event.descriptor;
	spec.monitor = middle;
	spec.descriptors = &share;
	spec.descriptor_count = 1;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(open_file("/", O_RDONLY, 0), -ECAPMODE);
		(void)lwc_switch(LWC_CALLER, 17, 0, &event);
		leave(1);
	}
	inner = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(middle, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
	/* middle is in its call; inner makes one. */
	REQUIRE_EQUAL(lwc_switch(inner, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 17);
}

static void
copies_keep_the_monitor(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED;
	set_bit(&spec, SYS_getpid);
	if (create(&spec, &event)) {
		spec.monitor = LWC_SELF;
		REQUIRE_EQUAL(lwc_create(&spec, &event), -EPERM); /* not one's own monitor */
		spec = plain_spec();
		if (create(&spec, &event)) {
			REQUIRE_EQUAL(CALL0(SYS_getpid), 99);
			leave(0);
		}
		(void)lwc_switch(event.descriptor, 0, 0, &event);
		leave(1);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.call, SYS_getpid);
	REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 99, 0, &event), 0);
	leave(1);
}

/* The monitor may discard a context in the middle of a call. */
static void
closed_in_a_call(void)
{
	struct lwc_spec spec = confined_spec();
	struct lwc_event event;

	for (int i = 0; i < 50; i++) {
		int context;

		if (create(&spec, &event)) {
			(void)open_file("/", O_RDONLY, 0);
			leave(1);
		}
		context = event.descriptor;
		REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
		/* A context in a call cannot be copied: the copy would answer twice. */
		REQUIRE_EQUAL(
		    lwc_create(
			&(struct lwc_spec){.version = LWC_VERSION, .source = context}, &event),
		    -EBUSY);
		REQUIRE_EQUAL(CALL1(SYS_close, context), 0);
		REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 0, 0, &event), -ESRCH);
		REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
	}
}

const struct check redirect_checks[] = {
    {"open in capability mode goes to the monitor", open_is_redirected, 0},
    {"registers survive redirection and do not leak", registers_survive, 0},
    {"a set of calls goes to the monitor", set_is_redirected, 0},
    {"fork and exec of the confined go to the monitor", processes_are_redirected, 0},
    {"an unknown call goes to the monitor", unknown_call, 0},
    {"a busy monitor is not asked", monitor_is_busy, 0},
    {"copies keep the monitor", copies_keep_the_monitor, 0},
    {"closed in the middle of a call", closed_in_a_call, 0},
    {NULL, NULL, 0},
};
