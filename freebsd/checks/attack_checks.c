/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What other processes of the user do to a process with contexts while it switches:
 * debuggers, signals to its thread, a process that shares its memory, and random calls of
 * its own. The kernel survives, and nothing is left behind.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signal.h>
#include <sys/sysctl.h>
#include <sys/wait.h>

#include "check.h"

#define USER 1001

static volatile uint64_t *switches; /* shared with all processes of the check */

static void
share_counter(void)
{
	switches = (uint64_t *)CALL6(
	    SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
	REQUIRE((uint64_t)switches > 4096);
}

/* Sessions after each other, each left by a switch or by a call that is redirected. */
static _Noreturn void
switch_for_ever(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED;
	for (;;) {
		if (create(&spec, &event)) {
			(void)CALL0(SYS_setsid); /* goes to the monitor */
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		}
		REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
		*switches += 1;
	}
}

static long
start(void (*run)(void))
{
	long child = CALL0(SYS_fork);

	if (child == 0)
		run();
	return child;
}

static void
wait_for_switches(uint64_t more)
{
	uint64_t end = *switches + more;

	while (*switches < end)
		(void)CALL0(SYS_sched_yield);
}

static void
become_user(void)
{
	REQUIRE_EQUAL(CALL1(SYS_setuid, USER), 0);
}

/* A signal to the thread that cannot be handled is for the process, not for a context. */
static void
killed_by_its_thread(void)
{
	share_counter();
	become_user();
	for (int round = 0; round < 60; round++) {
		long child = start(switch_for_ever);
		uint64_t sent;
		int status;

		wait_for_switches(3 + (uint64_t)round % 5);
		/* The number of its thread is not told: every thread of the process. */
		REQUIRE_EQUAL(CALL3(SYS_thr_kill2, child, -1, SIGKILL), 0);
		sent = *switches;
		while (CALL4(SYS_wait4, child, &status, WNOHANG, 0) == 0) {
			REQUIRE(*switches < sent + 1000);
			(void)CALL0(SYS_sched_yield);
		}
		REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static void
look_inside(long child)
{
	static char floating[8192];
	struct ptrace_io_desc io = {.piod_op = PIOD_READ_D,
	    .piod_offs = (void *)own_path,
	    .piod_addr = floating,
	    .piod_len = 16};
	struct ptrace_lwpinfo thread;
	struct reg registers;

	(void)CALL4(SYS_ptrace, PT_IO, child, &io, 0);
	(void)CALL4(SYS_ptrace, PT_LWPINFO, child, &thread, sizeof(thread));
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_GETREGS, child, &registers, 0), 0);
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_SETREGS, child, &registers, 0), 0);
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_GETFPREGS, child, floating, 0), 0);
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_SETFPREGS, child, floating, 0), 0);
}

static void
dump_core(long child)
{
	int file = open_file("/tmp/attack.core", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct ptrace_coredump dump = {.pc_fd = file};

	REQUIRE(file >= 0);
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_COREDUMP, child, &dump, sizeof(dump)), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, file), 0);
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/attack.core"), 0);
}

/* By root, as who has changed his user can be debugged by nobody else. Stopped at any moment, also
 * by every system call, looked at, changed, and let go. */
static void
debugged(void)
{
	long child;
	int status;

	share_counter();
	child = start(switch_for_ever);
	wait_for_switches(3);
	for (int round = 0; round < 60; round++) {
		REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_ATTACH, child, 0, 0), 0);
		REQUIRE_EQUAL(CALL4(SYS_wait4, child, &status, 0, 0), child);
		for (int step = 0; step < round % 7; step++) {
			look_inside(child);
			REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_SYSCALL, child, 1, 0), 0);
			REQUIRE_EQUAL(CALL4(SYS_wait4, child, &status, 0, 0), child);
			REQUIRE(WIFSTOPPED(status));
		}
		REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_DETACH, child, 1, 0), 0);
		wait_for_switches(2);
	}
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_ATTACH, child, 0, 0), 0);
	REQUIRE_EQUAL(CALL4(SYS_wait4, child, &status, 0, 0), child);
	dump_core(child);
	REQUIRE_EQUAL(CALL4(SYS_wait4, child, &status, 0, 0), child); /* it has stopped again */
	REQUIRE_EQUAL(CALL4(SYS_ptrace, PT_DETACH, child, 1, 0), 0);
	wait_for_switches(2);
	REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
	REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
}

/* Everything that sysctl(3) tells about a process. */
static void
asked_for_everything(void)
{
	static char buffer[65536];
	long child;

	share_counter();
	become_user();
	child = start(switch_for_ever);
	wait_for_switches(3);
	for (int round = 0; round < 40; round++)
		for (int kind = 0; kind < 64; kind++) {
			int name[4] = {CTL_KERN, KERN_PROC, kind, (int)child};
			size_t size = sizeof(buffer);

			if (kind != KERN_PROC_ALL && kind != KERN_PROC_PROC)
				(void)CALL6(SYS___sysctl, name, 4, buffer, &size, NULL, 0);
		}
	wait_for_switches(3);
	REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
	REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
}

static char *arena; /* of 64 pages */

/* Maps and unmaps in memory that another process copies and overlays. */
static _Noreturn void
disturb(void)
{
	for (uint32_t i = 0;; i++) {
		char *page = arena + i * 7 % 64 * 4096;

		(void)CALL2(SYS_munmap, page, 4096 * (1 + i % 3));
		(void)CALL6(SYS_mmap, page, 4096, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANON, -1, 0);
		(void)CALL3(SYS_minherit, page, 4096, i % 3);
		(void)CALL2(i % 2 ? SYS_mlock : SYS_munlock, page, 4096);
		*switches += 1;
	}
}

/* rfork(2) with shared memory: contexts are made of it while the other changes it. */
static void
memory_shared_by_another(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long child;

	share_counter();
	become_user();
	arena = map_pages(64);
	child = share_memory(disturb);
	REQUIRE(child > 0);
	wait_for_switches(10);
	for (int i = 0; i < 300; i++) {
		struct lwc_range range = {.start = (uint64_t)arena,
		    .length = (1 + (uint64_t)i % 64) * 4096,
		    .mode = (uint32_t)i % 3};
		struct lwc_overlay overlay = {.start = (uint64_t)arena,
		    .length = range.length,
		    .here = (uint64_t)arena + (1ul << 32),
		    .flags = i % 2 ? LWC_OVERLAY_WRITE : 0};

		spec.ranges = &range;
		spec.range_count = 1;
		if (lwc_create(&spec, &event) != 0)
			continue;
		if (lwc_overlay(event.descriptor, &overlay) == 0)
			(void)CALL2(SYS_munmap, overlay.here, overlay.length);
		REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	}
	REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
	REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
}

/*
 * Each context is shared at its own number, also when the number of the first is the one
 * at which the kernel begins to look for a free one.
 */
static void
shared_beside_each_other(void)
{
	struct lwc_descriptors both = {.first = 4, .last = 5, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event first, second, event;

	REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), 3);
	REQUIRE_EQUAL(lwc_create(&spec, &first), 0);
	REQUIRE_EQUAL(lwc_create(&spec, &second), 0);
	REQUIRE_EQUAL(first.descriptor, 4);
	REQUIRE_EQUAL(second.descriptor, 5);
	REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
	REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), 3);
	REQUIRE_EQUAL(lwc_restrict(4, &(struct lwc_restriction){0}), 0);
	spec.descriptors = &both;
	spec.descriptor_count = 1;
	if (create(&spec, &event)) {
		/* The one at 4 has no rights, the one at 5 has all. */
		REQUIRE_EQUAL(
		    lwc_overlay(
			4, &(struct lwc_overlay){.start = 4096, .length = 4096, .here = 4096}),
		    -ENOTCAPABLE);
		REQUIRE_EQUAL(
		    lwc_syscall(5, LWC_USE_FILES, SYS_getpid, 0, 0, 0), CALL0(SYS_getpid));
		(void)lwc_switch(LWC_CALLER, 12, 0, &event);
		leave(1);
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 12);
}

const struct check attack_checks[] = {
    {"contexts beside each other are shared", shared_beside_each_other, 0},
    {"a signal to the thread kills the process", killed_by_its_thread, 0},
    {"debugged while switching", debugged, 0},
    {"asked for everything while switching", asked_for_everything, 0},
    {"memory that another process changes", memory_shared_by_another, 0},
    {NULL, NULL, 0},
};
