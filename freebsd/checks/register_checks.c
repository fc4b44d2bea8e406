/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Registers beside those of every call: vector and floating point registers, and the bases
 * of segments. What one session leaves in them must not reach the next one, by whatever
 * way the kernel saves and loads them: a switch, a signal, or a state that sigreturn(2) is
 * given in part.
 */
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/ucontext.h>

#include "check.h"

#if defined(__x86_64__)

#define PATTERN 0xa5
#define AVX 4 /* bit of the component in a state's header */
#define STATE_HEADER 64

#define SESSIONS 5

struct registers {
	unsigned char legacy[512]; /* as fxsave stores them */
	unsigned char vectors[16][32];
} __attribute__((aligned(64)));

/* What sessions tell the checks: shared memory. */
struct report {
	struct registers begun[SESSIONS]; /* of each session, when it began */
	struct registers returned;        /* by setcontext(2), of which a part was missing */
	unsigned char state[8192];        /* of a signal's frame */
	uint64_t state_size;
};

static struct report *report;

__attribute__((noinline)) static void
store(struct registers *to)
{
	__asm__ volatile("fxsave64 (%0)\n"
			 "vmovdqu %%ymm0, (%1)\n vmovdqu %%ymm1, 32(%1)\n"
			 "vmovdqu %%ymm2, 64(%1)\n vmovdqu %%ymm3, 96(%1)\n"
			 "vmovdqu %%ymm4, 128(%1)\n vmovdqu %%ymm5, 160(%1)\n"
			 "vmovdqu %%ymm6, 192(%1)\n vmovdqu %%ymm7, 224(%1)\n"
			 "vmovdqu %%ymm8, 256(%1)\n vmovdqu %%ymm9, 288(%1)\n"
			 "vmovdqu %%ymm10, 320(%1)\n vmovdqu %%ymm11, 352(%1)\n"
			 "vmovdqu %%ymm12, 384(%1)\n vmovdqu %%ymm13, 416(%1)\n"
			 "vmovdqu %%ymm14, 448(%1)\n vmovdqu %%ymm15, 480(%1)\n"
			 :
			 : "r"(to->legacy), "r"(to->vectors)
			 : "memory");
}

/* Fills every vector register, the stack of the x87, and both control words. */
__attribute__((noinline)) static void
fill(void)
{
	static unsigned char pattern[32];
	static const uint32_t control = 0x1f80 | 0x6000; /* rounds to zero */
	static const uint16_t x87_control = 0x0c7f;

	memset(pattern, PATTERN, sizeof(pattern));
	__asm__ volatile("ldmxcsr %1\n fldcw %2\n"
			 "fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n"
			 "vmovdqu (%0), %%ymm0\n vmovdqu (%0), %%ymm1\n vmovdqu (%0), %%ymm2\n"
			 "vmovdqu (%0), %%ymm3\n vmovdqu (%0), %%ymm4\n vmovdqu (%0), %%ymm5\n"
			 "vmovdqu (%0), %%ymm6\n vmovdqu (%0), %%ymm7\n vmovdqu (%0), %%ymm8\n"
			 "vmovdqu (%0), %%ymm9\n vmovdqu (%0), %%ymm10\n vmovdqu (%0), %%ymm11\n"
			 "vmovdqu (%0), %%ymm12\n vmovdqu (%0), %%ymm13\n vmovdqu (%0), %%ymm14\n"
			 "vmovdqu (%0), %%ymm15\n"
			 :
			 : "r"(pattern), "m"(control), "m"(x87_control)
			 : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			 "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* Sets all to their initial values, so that they are not in use. */
__attribute__((noinline)) static void
clear(void)
{
	__asm__ volatile("vzeroall\n fninit" : : : "memory");
}

static bool
has_pattern(const void *where, size_t size)
{
	const unsigned char *byte = where;
	size_t run = 0;

	for (size_t i = 0; i < size; i++) {
		run = byte[i] == PATTERN ? run + 1 : 0;
		if (run == 8)
			return true;
	}
	return false;
}

/* Keeps the state of the frame: the kernel saved it there. */
static void
keep_state(int number, siginfo_t *information, void *frame)
{
	const mcontext_t *context = &((ucontext_t *)frame)->uc_mcontext;

	(void)number, (void)information;
	if ((context->mc_flags & _MC_HASFPXSTATE) == 0)
		return;
	report->state_size = (uint64_t)context->mc_xfpustate_len;
	memcpy(report->state, context->mc_fpstate, sizeof(context->mc_fpstate));
	memcpy(report->state + sizeof(context->mc_fpstate), (void *)context->mc_xfpustate,
	    report->state_size);
}

static void
take_signal(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = keep_state;
	action.sa_flags = SA_SIGINFO;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, SIGUSR1, &action, NULL), 0);
	REQUIRE_EQUAL(CALL2(SYS_kill, CALL0(SYS_getpid), SIGUSR1), 0);
}

static ucontext_t partial; /* made before there are sessions */

/* Where a session goes on, with what was loaded. */
static void
with_a_part(void)
{
	struct lwc_event event;

	store(&report->returned);
	(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	leave(1);
}

/*
 * Makes a context in which the header of the extended state promises vectors, and is all
 * that there is of it: setcontext(2) loads the rest from what the kernel has saved before.
 */
static void
make_partial(void)
{
	static uint64_t header[STATE_HEADER / sizeof(uint64_t)] = {AVX | 3};
	mcontext_t *context = &partial.uc_mcontext;
	char *stack = map_pages(16);

	REQUIRE_EQUAL(CALL1(SYS_getcontext, &partial), 0);
	context->mc_flags |= _MC_HASFPXSTATE;
	context->mc_xfpustate = (register_t)header;
	context->mc_xfpustate_len = sizeof(header);
	context->mc_rip = (register_t)with_a_part;
	context->mc_rsp = (register_t)(stack + 16 * 4096 - 8);
}

static void
run_session(int snapshot, uint64_t number)
{
	struct lwc_spec spec = {.version = LWC_VERSION, .source = snapshot};
	struct lwc_event event;
	int session;

	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	session = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(session, number, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
}

/* A session of a snapshot: what it finds, and what it leaves. */
static _Noreturn void
session(uint64_t number)
{
	static const struct timespec moment = {0, 2000000};
	struct lwc_event event;

	store(&report->begun[number]);
	if (number % 2 == 1) {
		fill();
		(void)CALL2(SYS_nanosleep, &moment, NULL); /* the kernel saves them */
	} else if (number == 2) {
		clear();
		take_signal();
	} else if (number == 4) {
		clear();
		(void)CALL1(SYS_setcontext, &partial);
	}
	(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	leave(1);
}

static void
vectors_do_not_pass(void)
{
	static struct registers here;
	struct lwc_range range;
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int snapshot;

	report = map_pages(8);
	range =
	    (struct lwc_range){.start = (uint64_t)report, .length = 8 * 4096, .mode = LWC_SHARE};
	spec.ranges = &range;
	spec.range_count = 1;
	make_partial();
	clear();
	if (create(&spec, &event))
		session(event.argument);
	snapshot = event.descriptor;
	for (uint64_t number = 0; number < SESSIONS; number++) {
		run_session(snapshot, number);
		store(&here);
		REQUIRE(!has_pattern(&here, sizeof(here)));
	}
	REQUIRE(!has_pattern(report->begun, sizeof(report->begun)));
	for (size_t i = 1; i < SESSIONS; i++)
		REQUIRE(memcmp(&report->begun[0], &report->begun[i], sizeof(here)) == 0);
	REQUIRE(report->state_size > STATE_HEADER);
	REQUIRE(!has_pattern(report->state, sizeof(report->state)));
	REQUIRE(report->returned.legacy[25] != 0); /* of the control word: it got there */
	REQUIRE(!has_pattern(&report->returned, sizeof(report->returned)));
}

/* A context keeps its own: bases of segments, control words, vectors. */
static void
registers_are_kept(void)
{
	static struct registers before, after;
	static uint64_t place[2] = {17, 18};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t *base = place, found;

	if (create(&spec, &event)) {
		base = place + 1;
		REQUIRE_EQUAL(CALL2(SYS_sysarch, 129, &base), 0); /* AMD64_SET_FSBASE */
		fill();
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		store(&after);
		__asm__ volatile("mov %%fs:0, %0" : "=r"(found));
		REQUIRE_EQUAL(found, 18);
		REQUIRE(has_pattern(after.vectors[15], sizeof(after.vectors[15])));
		leave(0);
	}
	REQUIRE_EQUAL(CALL2(SYS_sysarch, 129, &base), 0);
	clear();
	store(&before);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	store(&after);
	REQUIRE(memcmp(before.legacy, after.legacy, 32) == 0); /* the control words */
	__asm__ volatile("mov %%fs:0, %0" : "=r"(found));
	REQUIRE_EQUAL(found, 17);
	(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	REQUIRE_EQUAL(lwc_switch(3, 0, 0, &event), 0);
	leave(1);
}

const struct check register_checks[] = {
    {"vector registers do not pass between sessions", vectors_do_not_pass, 0},
    {"a context keeps its registers", registers_are_kept, 0},
    {NULL, NULL, 0},
};

#else

const struct check register_checks[] = {{NULL, NULL, 0}};

#endif
