/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Seals a worker, so that it can serve one session after the other: between two sessions
 * the roll-back code (shai_rollback.h) restores what the first of them found.
 */
#ifndef SHAI_LINUX_SEAL_H
#define SHAI_LINUX_SEAL_H

#include <stdint.h>

/*
 * Prepares this worker for being rolled back and asks the monitor to seal it. Returns -1
 * if it is not sealed: it then serves one session. Otherwise the roll-back code waits for
 * users, and this returns the connection of each, in the same state as for the first.
 */
int64_t shai_seal_and_accept(void);

/* Goes to the roll-back code. The worker must be sealed. */
__attribute__((noreturn)) void shai_roll_back(void);

#endif
