/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The workers that a zygote has forked. In capability mode wait4(2) is refused;
 * here it is done with what is not: events of the processes. What a process that
 * has ended leaves stays in the kernel until the zygote ends, too.
 */
#ifndef SHAI_WORKERS_H
#define SHAI_WORKERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "refused_call.h"

/* Watches a child from now on. Returns 0, or -1 with errno. */
int shai_workers_add(pid_t child);

/* In a child that has just been forked: what its parent watches is not inherited. */
void shai_workers_forget(void);

/*
 * Finishes a refused wait4(2) for any child. False when the call is another, or
 * waits for something else. *result is the call's; -1 with errno. Async-signal-safe.
 */
bool shai_workers_wait(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], long *result);

#endif
