/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sealed workers, which have one session after the other. The accept4 in the roll-back code
 * (rollback_code.S) ends a session: the worker executes nothing but this code before its next
 * one, which begins as the first one did. An error of accept4 only rolls the worker back.
 */
#ifndef SUPERVISOR_REUSE_H
#define SUPERVISOR_REUSE_H

#include "supervisor.h"

/* Obeys a record: the worker's seccomp call goes on, and the worker is sealed. */
void reuse_sealed(struct supervisor *s, const struct shai_control_sealed *record);

/* A worker waits in accept4, whose notification is call: the first time, or sealed, again. */
void reuse_waits(struct supervisor *s, struct worker *worker, uint64_t call);

/* A sealed worker has said that its session is over: it has to return soon. */
void reuse_leaves(struct supervisor *s, struct worker *worker);

/* Obeys a record: a worker that was compared gets sessions, or is killed. */
void reuse_compared(struct supervisor *s, const struct shai_control_compared *record);

/*
 * The mode of new sessions has changed: kills those workers that wait and whose former sessions
 * had their connection at another number. Others follow when they return.
 */
void reuse_follow_mode(struct supervisor *s);

/*
 * Rolls back workers that wait for long, so that memory and files of their last sessions do not
 * stay, and kills those that have said that their session is over and stay in it. Returns when to
 * call it again at the latest.
 */
int64_t reuse_tend(struct supervisor *s);

#endif
