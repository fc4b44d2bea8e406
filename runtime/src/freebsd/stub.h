/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stub: the half of a worker that stands between a session and the monitor. It
 * holds what a session may have on demand, and decides what the session gets. The
 * decisions do not depend on how the two are connected (stub_contexts.c,
 * stub_processes.c).
 *
 * There is one session at a time. The stub is in capability mode like the session. It
 * only has additional descriptors, which a session never inherits.
 */
#ifndef SHAI_STUB_H
#define SHAI_STUB_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "stub_files.h"
#include "stub_record.h"

#define SHAI_EXIT_STUB 71 /* EX_OSERR: a worker that cannot serve */

/* A descriptor is -1, and decisions is NULL, if there is none. */
struct stub {
	int requests; /* to the sandbox */
	int last;     /* the highest number that must be closed before the reply socket */
	int reply;    /* open as long as the session, for the sandbox; closed last */
	bool placed;  /* there is a user */
	int monitor;
	int channel;
	int connection;        /* the user's, if the session's copy cannot be written to */
	int connection_number; /* its number in the session */
	int view;
	const struct shai_decisions *decisions;
	struct stub_files files; /* that each session opens anew */
};

/* What to do after a request. */
enum stub_outcome {
	STUB_ANSWER = 1, /* send the answer, and the second one if it has a length */
	STUB_BROKEN,     /* the monitor is gone or not trusted any more: the session gets no more
			    answers */
	STUB_OVER        /* the session is over */
};

/*
 * Has the sandbox examine this process, which must have made nothing yet. Then takes over
 * SHAI_FD_REQUESTS and leaves a filler there. Returns 0, or -1 with errno: EACCES if the
 * worker shares something that the sandbox has not made.
 */
int stub_begin(struct stub *stub);

/*
 * Waits until one of the descriptors is ready. Only here can signals arrive that end
 * the process.
 */
void stub_wait(struct pollfd *wanted, nfds_t count);

/*
 * Blocks signals, so that the program's handlers run in sessions only. *old becomes
 * the mask that a session is to have.
 */
void stub_block_signals(sigset_t *old);

/* Ends the worker with an error message. */
__attribute__((noreturn)) void stub_give_up(const char *what);

#endif
