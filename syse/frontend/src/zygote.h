/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The zygote: a single-threaded process that was set up before any user's data
 * existed, and forks workers. It holds no descriptors but its given ones.
 */
#ifndef SYSE_ZYGOTE_H
#define SYSE_ZYGOTE_H

#include "worker.h"

/*
 * Says on standard output that connections are served from now on, and forks workers, which
 * start as copies of *pristine, until SIGTERM arrives. If the task has a supervisor, this
 * decides when to fork, and is the workers' parent. Otherwise the zygote keeps
 * settings->workers workers alive. Returns the exit status of the zygote, or, in a worker,
 * that of the worker.
 */
int zygote_run(struct worker *pristine);

#endif
