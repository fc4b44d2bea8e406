/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The workers that a zygote has forked. The kernel refuses wait4(2) in capability
 * mode, so this file waits for process events, which are allowed. The kernel keeps an
 * ended process as a zombie until the zygote ends, too.
 */
#ifndef SHAI_WORKERS_H
#define SHAI_WORKERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "refused_call.h"

/* Watches a child from now on. Returns 0, or -1 with errno. */
int shai_workers_add(pid_t child);

/*
 * Forgets the children in a process that has just been forked: it does not inherit
 * the watches.
 */
void shai_workers_forget(void);

/*
 * Finishes a refused wait4(2) for any child. Returns false if the call is another
 * one, or waits for something else. *result becomes the call's result, -1 with errno.
 * Async-signal-safe.
 */
bool shai_workers_wait(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], long *result);

#endif
