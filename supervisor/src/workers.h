/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The zygote's forks, which are this process's children: how many there are, which of
 * them wait for a session, and how they end.
 */
#ifndef SUPERVISOR_WORKERS_H
#define SUPERVISOR_WORKERS_H

#include "supervisor.h"

/*
 * Opens what is needed to look at the zygote and at the number of children, once the
 * launcher runs. Returns NULL, or what failed, with errno.
 */
const char *workers_open(pid_t zygote);

/* Changes the state of a worker. */
void worker_become(struct supervisor *s, struct worker *worker, enum worker_state state);

/* Any worker in a state, or NULL. */
struct worker *workers_in(struct supervisor *s, enum worker_state state);

/*
 * The worker with this number, which has just made a call: a known one, or a new one in
 * the state WORKER_BORN. NULL if the caller is no child of this process.
 */
struct worker *workers_caller(struct supervisor *s, pid_t pid);

/*
 * Whether the zygote holds nothing beyond the reserved descriptors: workers would share
 * the offsets and locks of what it holds. False, too, if this cannot be found out.
 */
bool workers_zygote_is_clean(void);

/*
 * Answers the zygote's fork if a worker is wanted now. Returns when this has to be asked
 * again at the latest (see loop_now).
 */
int64_t workers_fork(struct supervisor *s);

/* Reaps what has ended. Returns whether any child is left. */
bool workers_reap(struct supervisor *s);

/* Kills the zygote and all workers. */
void workers_kill_all(struct supervisor *s);

#endif
