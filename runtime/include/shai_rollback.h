/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How a worker is rolled back between two sessions (Linux, x86-64). The supervisor has the
 * roll-back code, libshai seals its worker for it, and the monitor verifies what libshai has
 * done; all three agree on this header. It may be included by assembly.
 *
 * A sealed worker has two regions at fixed addresses that it cannot change: one page of code,
 * and the state, from which the code restores everything else that the worker can write. The
 * state begins with struct shai_rollback_state; the vector registers (XSAVE area, standard
 * form) and the pages follow.
 */
#ifndef SHAI_ROLLBACK_H
#define SHAI_ROLLBACK_H

#define SHAI_ROLLBACK_CODE 0x200000000000 /* its first byte is the entry; it does not return */
#define SHAI_ROLLBACK_CODE_SIZE 0x1000
#define SHAI_ROLLBACK_ACCEPTED 0x40 /* offset of the instruction after the code's accept4 */
#define SHAI_ROLLBACK_SEAL 0x180    /* offset of the function that asks for the seal, … */
#define SHAI_ROLLBACK_SEALED 0x1a0  /* … and of the instruction after its seccomp */
#define SHAI_ROLLBACK_STOPPED 0x1e0 /* offset of a struct itimerval that stops a timer */
#define SHAI_ROLLBACK_STATE 0x200000010000
#define SHAI_ROLLBACK_VECTORS 0x2000      /* offset in the state */
#define SHAI_ROLLBACK_VECTORS_SIZE 0x4000 /* bytes; a processor with more is not supported */
#define SHAI_ROLLBACK_VECTORS_USED 512    /* offset in the vector registers: XSTATE_BV, … */
#define SHAI_ROLLBACK_VECTORS_ALWAYS 3    /* … in which x87 and SSE always count as used */
#define SHAI_ROLLBACK_SNAPSHOT 0x6000     /* offset in the state: the pages of range after range */
#define SHAI_ROLLBACK_PAGE 0x1000
#define SHAI_ROLLBACK_RANGES_MAX 256
#define SHAI_ROLLBACK_PAGES_MAX 16384
#define SHAI_ROLLBACK_FILTER_MAX 1024 /* instructions */
#define SHAI_ROLLBACK_LISTEN 6        /* SHAI_FD_LISTEN, which the code accepts from */
#define SHAI_ROLLBACK_OPENED 160      /* SHAI_FD_RESERVED_END: the code closes all from here on */

/* What the monitor cannot see, and keeps a worker from being sealed. */
#define SHAI_ROLLBACK_HAS_TIMERS 1     /* interval timers, on which it relies */
#define SHAI_ROLLBACK_HAS_NO_RESERVE 2 /* memory for sessions */

/* Offsets in struct shai_rollback_state. */
#define SHAI_ROLLBACK_RANGE_COUNT 0x00
#define SHAI_ROLLBACK_STACK 0x08
#define SHAI_ROLLBACK_RESUME 0x10
#define SHAI_ROLLBACK_THREAD 0x18
#define SHAI_ROLLBACK_RANGES 0x40
#define SHAI_ROLLBACK_RANGE_SIZE 24

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers are multiples of SHAI_ROLLBACK_PAGE. */
struct shai_rollback_range {
	uint64_t destination; /* address of what is restored */
	uint64_t source;      /* address of its copy in the snapshot */
	uint64_t length;      /* bytes */
};

struct shai_rollback_state {
	uint64_t range_count; /* 1..SHAI_ROLLBACK_RANGES_MAX */
	uint64_t stack;       /* stack pointer with which the worker goes on */
	uint64_t resume;      /* where it goes on; RAX has the connection */
	uint64_t thread;      /* FS base */
	uint64_t unfit;       /* SHAI_ROLLBACK_HAS_*: it is not to be sealed; 0: it may be */
	uint64_t reserved[3]; /* 0 */
	struct shai_rollback_range range[SHAI_ROLLBACK_RANGES_MAX];
};

static_assert(offsetof(struct shai_rollback_state, range_count) == SHAI_ROLLBACK_RANGE_COUNT &&
		  offsetof(struct shai_rollback_state, stack) == SHAI_ROLLBACK_STACK &&
		  offsetof(struct shai_rollback_state, resume) == SHAI_ROLLBACK_RESUME &&
		  offsetof(struct shai_rollback_state, thread) == SHAI_ROLLBACK_THREAD &&
		  offsetof(struct shai_rollback_state, range) == SHAI_ROLLBACK_RANGES &&
		  sizeof(struct shai_rollback_range) == SHAI_ROLLBACK_RANGE_SIZE,
    "the code reads it");
static_assert(sizeof(struct shai_rollback_state) <= SHAI_ROLLBACK_VECTORS, "it fits");

#endif
#endif
