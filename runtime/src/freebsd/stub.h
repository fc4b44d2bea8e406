/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stub: the half of a worker that stands between a session and the monitor.
 * It holds what a session may have on demand and decides what it gets, the same
 * way however the two talk to each other (stub_contexts.c, stub_processes.c).
 *
 * One session at a time. The stub is in capability mode like the session; what it
 * has more is descriptors, which a session's half never inherits.
 */
#ifndef SHAI_STUB_H
#define SHAI_STUB_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>

#include "stub_record.h"

#define SHAI_EXIT_STUB 71 /* EX_OSERR: a worker that cannot serve */

/* Descriptors are -1 and decisions NULL while there are none. */
struct stub {
	int requests; /* to the sandbox */
	int last;     /* the highest number of what has to be closed before the reply socket */
	int reply;    /* its other end is the session, for the sandbox; closed last */
	bool placed;  /* there is a user */
	int monitor;
	int channel;
	int connection;        /* the user's, where the session's copy cannot be written to */
	int connection_number; /* what the session knows it by */
	int view;
	const struct shai_decisions *decisions;
};

/* What is to be done after a request. */
enum stub_outcome {
	STUB_ANSWER = 1, /* send the answer, and the second one if it has a length */
	STUB_BROKEN,     /* the monitor is gone or has lost our trust: the session hears no more */
	STUB_OVER        /* the session is */
};

/* Takes over SHAI_FD_REQUESTS, leaving a filler there. Returns 0, or -1 with errno. */
int stub_begin(struct stub *stub);

/*
 * Waits until one of the descriptors is ready. Signals that the process dies of may
 * arrive here, and nowhere else in a stub.
 */
void stub_wait(struct pollfd *wanted, nfds_t count);

/*
 * Blocks signals, so that the program's handlers run in sessions only. *old becomes
 * what a session is to have.
 */
void stub_block_signals(sigset_t *old);

/* Ends the worker; says why. */
__attribute__((noreturn)) void stub_give_up(const char *what);

#endif
