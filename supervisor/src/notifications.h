/* SPDX-License-Identifier: BSD-2-Clause
 *
 * System calls of the task that wait for an answer. The supervisor answers forks and
 * accepted connections; the monitor answers all others, with its own duplicate of the
 * listener.
 */
#ifndef SUPERVISOR_NOTIFICATIONS_H
#define SUPERVISOR_NOTIFICATIONS_H

#include "supervisor.h"

/* Takes over the seccomp listener and watches it. Returns 0, or -1 with errno. */
int notifications_begin(struct supervisor *s, int listener);

/* Lets the kernel execute a call whose arguments are values. 0, or -1 if its caller is gone. */
int notification_continue(struct supervisor *s, uint64_t id);

/* Answers a call with an error. It does not matter whether its caller is gone. */
void notification_fail(struct supervisor *s, uint64_t id, int error);

/*
 * Places a file in the caller's process at a number; with last, the call also returns
 * this number. Returns 0, or -1 with errno: ENOENT if the caller is gone.
 */
int notification_place(struct supervisor *s, uint64_t id, int file, int number, bool last);

/* Answers the fork that the zygote waits in, so that a signal can reach it. */
void notifications_release_fork(struct supervisor *s);

#endif
