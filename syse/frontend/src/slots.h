/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A zygote that is its workers' parent: it keeps one worker alive per slot.
 */
#ifndef SYSE_SLOTS_H
#define SYSE_SLOTS_H

#include "worker.h"

/*
 * Keeps settings->workers workers alive until SIGTERM or SIGINT arrives, then stops
 * them. A worker that dies immediately is replaced with growing delays, up to 5 s, and a
 * message on standard error. Returns like zygote_run.
 */
int slots_run(struct worker *pristine);

#endif
