/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The zygote: a single-threaded process that was set up before any user's data
 * existed, and keeps one forked worker alive per slot.
 */
#ifndef SYSE_ZYGOTE_H
#define SYSE_ZYGOTE_H

#include "worker.h"

/*
 * Keeps settings->workers workers alive until SIGTERM or SIGINT arrives, then stops
 * them. Workers start as copies of *pristine. A worker that dies immediately is
 * replaced with growing delays, up to 5 s, and a message on standard error. Returns
 * the exit status of the zygote, or, in a worker, that of the worker.
 */
int zygote_run(struct worker *pristine);

#endif
