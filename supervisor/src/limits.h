/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How often an event about a peer is sent. A peer is an IPv4 address or an IPv6 network of
 * 64 bits, all of which one client may have.
 * Needs no memory but its own. Times are of a monotonic clock, in nanoseconds.
 */
#ifndef SUPERVISOR_LIMITS_H
#define SUPERVISOR_LIMITS_H

#include <stdbool.h>

#include "shai_supervision.h"

#define LIMITS_PEERS 256                    /* remembered at the same time */
#define LIMITS_INTERVAL INT64_C(1000000000) /* between two events about one peer */

struct peer {
	uint8_t address[SHAI_ADDRESS_SIZE]; /* of a network, the first */
	uint32_t withheld;                  /* events since the last one that was sent */
	int64_t quiet;                      /* none is sent before this time */
};

/* All zero: no event was sent. */
struct limits {
	struct peer peer[LIMITS_PEERS];
	struct peer others; /* those that there was no room for */
};

/* The first address of a peer that has an address. */
void limits_network(const uint8_t address[SHAI_ADDRESS_SIZE], uint8_t out[SHAI_ADDRESS_SIZE]);

/*
 * Returns whether an event about a peer may be sent now. If so, *withheld becomes how many
 * were not since the last one; otherwise it is counted.
 */
bool limits_report(struct limits *limits, const uint8_t address[SHAI_ADDRESS_SIZE], int64_t now,
    uint32_t *withheld);

/*
 * Returns a peer about which events were withheld and may be sent now, or NULL. The caller
 * sends one with the number in *withheld, and asks again.
 */
const struct peer *limits_due(struct limits *limits, int64_t now, uint32_t *withheld);

/* Returns when limits_due has something to return next, INT64_MAX if nothing is withheld. */
int64_t limits_deadline(const struct limits *limits);

#endif
