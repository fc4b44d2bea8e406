/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that shares the memory of contexts, since before the first one or by way of
 * vfork(2).
 */
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"

#define USER 1001
#define HERE ((char *)0x200000000)

#if defined(__x86_64__)

#define PAGES 1500

/* Shared by all. */
static volatile struct control {
	uint32_t page; /* to be flipped, from 1 on */
	uint32_t ready;
	uint32_t stop;
} * control;

static char *area; /* every second page is mapped: an entry of its own */

static char *
page_at(uint32_t i)
{
	return area + (size_t)i * 2 * 4096;
}

/* In the memory of the suspended context: makes each page writable, once, at some time. */
static _Noreturn void
flip(void)
{
	uint32_t random = 2463534242u, done = 0;

	for (;;) {
		if (control->stop)
			leave(0);
		if (control->page == done) {
			(void)CALL0(SYS_sched_yield);
			continue;
		}
		done = control->page;
		(void)CALL3(SYS_mprotect, page_at(done - 1), 4096, PROT_READ);
		control->ready = done;
		random = random * 1664525u + 1013904223u;
		for (volatile uint32_t wait = 500 + random % 20000; wait != 0; wait--)
			continue;
		(void)CALL3(SYS_mprotect, page_at(done - 1), 4096, PROT_READ | PROT_WRITE);
	}
}

static inline __attribute__((always_inline)) long
returns_twice(long number, long argument)
{
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(argument)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
}

/* Overlays pages for writing while another process changes their protection. */
static _Noreturn void
attack(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int context;

	REQUIRE_EQUAL(CALL1(SYS_setuid, USER), 0);
	if (create(&spec, &event)) {
		/*
		 * A process with contexts may not share its memory, but the child of
		 * vfork(2) has none, and its own child goes on after it.
		 */
		long child = returns_twice(SYS_vfork, 0);

		if (child == 0) {
			(void)share_memory(flip);
			leave(0);
		}
		(void)lwc_switch(LWC_CALLER, (uint64_t)child, 0, &event);
		leave(1);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(wait_for((long)event.argument), 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		const struct lwc_overlay overlay = {.start = (uint64_t)page_at(i),
		    .length = 4096,
		    .here = (uint64_t)HERE,
		    .flags = LWC_OVERLAY_WRITE};
		bool writable = false;

		control->page = i + 1;
		while (control->ready != i + 1)
			(void)CALL0(SYS_sched_yield);
		while (!writable) {
			if (lwc_overlay(context, &overlay) != 0)
				continue;
			writable = CALL3(SYS_mprotect, HERE, 4096, PROT_READ | PROT_WRITE) == 0;
			if (writable)
				*(volatile char *)HERE = 'x';
			REQUIRE_EQUAL(CALL2(SYS_munmap, HERE, 4096), 0);
		}
	}
	control->stop = 1;
	leave(0);
}

/* This process, here root, has forked the attacker, which writes into its memory. */
static void
overlay_of_copied(void)
{
	long child, changed = 0;

	control = (volatile struct control *)CALL6(
	    SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
	area = map_pages(PAGES * 2);
	for (uint32_t i = 0; i < PAGES; i++) {
		*page_at(i) = 'a';
		REQUIRE_EQUAL(CALL2(SYS_munmap, page_at(i) + 4096, 4096), 0);
	}
	child = CALL0(SYS_fork);
	if (child == 0)
		attack();
	REQUIRE_EQUAL(wait_for(child), 0);
	control->stop = 1;
	for (uint32_t i = 0; i < PAGES; i++)
		changed += *page_at(i) != 'a';
	REQUIRE_EQUAL(changed, 0);
}

/* posix_spawn(3) begins with rfork(2) and RFSPAWN, and goes on with vfork(2) where it fails so. */
static void
spawning(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long child;

	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	REQUIRE_EQUAL(CALL1(SYS_rfork, RFSPAWN), -EINVAL);
	child = returns_twice(SYS_vfork, 0);
	if (child == 0)
		leave(9);
	REQUIRE_EQUAL(wait_for(child), 9);
}

#endif

const struct check shared_memory_checks[] = {
#if defined(__x86_64__)
    {"an overlay writes nothing that is copied on write", overlay_of_copied, 0},
    {"a process with contexts spawns another", spawning, 0},
#endif
    {NULL, NULL, 0},
};
