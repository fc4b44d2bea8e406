/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions of a sealed worker. The stand-in is not really sealed: what rolls a worker back is
 * tested in rollback_test.c.
 */
#ifndef SUPERVISOR_TESTS_REUSED_H
#define SUPERVISOR_TESTS_REUSED_H

#include "harness.h"

/* Starts a supervisor with one slot, whose worker is sealed. */
void reused_start(struct harness *h, uint32_t sessions_per_worker);

/* Begins a session, with a user if principal is not NULL. Returns its worker. */
pid_t reused_begin(struct harness *h, struct client *client, const char *principal);

/* The first session of a worker, which has been compared when this returns. */
pid_t reused_first(struct harness *h, const char *principal);

#endif
