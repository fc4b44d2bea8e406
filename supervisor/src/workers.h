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

/* Kills a worker without a session, which is not needed any more. */
void worker_dismiss(struct supervisor *s, struct worker *worker);

/* The number at which sessions in a mode have their connection. */
int worker_connection(enum shai_mode mode);

/* The entry of a worker's sessions. */
struct session *worker_session(struct supervisor *s, const struct worker *worker);

/* A worker that may have a session now, or NULL. */
struct worker *workers_ready(struct supervisor *s);

/* The worker with this number, or NULL. */
struct worker *workers_known(struct supervisor *s, pid_t pid);

/* How many workers wait for a session, or soon will. */
uint32_t workers_waiting(const struct supervisor *s);

/*
 * Lengthens the pause before the next fork, because a worker has failed at its start, or ends it,
 * because one had a session. How a session ends is up to its client, who must not make others
 * wait for their workers.
 */
void workers_back_off(struct supervisor *s, bool failing);

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
