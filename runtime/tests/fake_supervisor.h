/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A supervisor, and what of a monitor it asks, for tests with a worker in a process of its
 * own: it answers the worker's accept4, seccomp, mmap and brk. It seals and refuses as it
 * is told, and examines nothing.
 */
#ifndef SHAI_TESTS_FAKE_SUPERVISOR_H
#define SHAI_TESTS_FAKE_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shai_gate.h"

struct fake_supervisor {
	pid_t worker;
	int listener;
	bool sealed;             /* the worker can no longer change its mappings */
	unsigned asked;          /* how often the worker has called seccomp */
	uint64_t accept_call;    /* the call that waits for a user */
	struct shai_grant grant; /* which the worker gets before it is sealed */
	bool binds;              /* sessions log in, as their first request */
};

/*
 * Starts a worker that has the reserved numbers, with the roll-back code if it is offered,
 * and runs the program, which must not return.
 */
void fake_supervisor_start(struct fake_supervisor *fake, bool offered, void (*program)(void));

/* Sees the worker when it calls seccomp, with the address of the call's program. */
typedef void fake_examination(const struct fake_supervisor *fake, uint64_t program);

/*
 * Answers the worker until it waits for a user, and seals it if it asks and is to be
 * sealed. Returns false if it has ended instead.
 */
bool fake_supervisor_await(
    struct fake_supervisor *fake, bool seal, fake_examination *examine_or_null);

/* Has the waiting worker roll back, and awaits that it waits again. */
void fake_supervisor_roll_back(struct fake_supervisor *fake);

/*
 * Gives the waiting worker a user, to whom it writes size bytes, and who then sees the
 * session's end. Returns whether the worker waits again.
 */
bool fake_supervisor_session(struct fake_supervisor *fake, void *answer, size_t size);

/* Gives the waiting worker a channel. Returns its writing end. */
int fake_supervisor_channel(const struct fake_supervisor *fake);

/* Returns the status of a worker that has ended, or kills it first. */
int fake_supervisor_end(struct fake_supervisor *fake, bool kill_it);

#endif
