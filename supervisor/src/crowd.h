/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How many connections of a peer may be without a user at a time (settings.per_peer): those
 * who only connect must not keep all others out. Nobody is refused who logs in within
 * CROWD_HURRY, and connections with a user do not count. A peer is what limits_network says.
 */
#ifndef SUPERVISOR_CROWD_H
#define SUPERVISOR_CROWD_H

#include "supervisor.h"

#define CROWD_HURRY SECOND

/* How many sessions of a peer are without a user. A queue_usage of a struct supervisor. */
uint32_t crowd_size(const void *supervisor, const uint8_t peer[SHAI_ADDRESS_SIZE]);

/*
 * Whether a peer may not connect now: per_peer of its connections have been without a user
 * for longer than CROWD_HURRY.
 */
bool crowd_refuses(const struct supervisor *s, const uint8_t peer[SHAI_ADDRESS_SIZE], int64_t now);

/*
 * Whether a session has to end that has been without a user for CROWD_HURRY: more than
 * per_peer of its peer's connections are without one, this among them.
 */
bool crowd_exceeds(const struct supervisor *s, const struct session *session);

/* Why, for the monitor. */
void crowd_reason(const struct supervisor *s, char reason[SHAI_REASON_MAX]);

#endif
