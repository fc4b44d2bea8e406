/* SPDX-License-Identifier: BSD-2-Clause */
#include "limits.h"

#include <stddef.h>
#include <string.h>

void
limits_network(const uint8_t address[SHAI_ADDRESS_SIZE], uint8_t out[SHAI_ADDRESS_SIZE])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(out, address, SHAI_ADDRESS_SIZE);
	if (memcmp(address, mapped, sizeof(mapped)) != 0)
		memset(out + 8, 0, 8);
}

static bool
forgettable(const struct peer *peer, int64_t now)
{
	return peer->withheld == 0 && peer->quiet <= now;
}

/* Returns the entry of an address, a new one if there is room, else NULL. */
static struct peer *
entry(struct limits *limits, const uint8_t wanted[SHAI_ADDRESS_SIZE], int64_t now)
{
	struct peer *room = NULL;

	for (size_t i = 0; i < LIMITS_PEERS; i++) {
		struct peer *peer = &limits->peer[i];

		if (memcmp(peer->address, wanted, SHAI_ADDRESS_SIZE) == 0)
			return peer;
		if (room == NULL && forgettable(peer, now))
			room = peer;
	}
	if (room != NULL) {
		memset(room, 0, sizeof(*room));
		memcpy(room->address, wanted, SHAI_ADDRESS_SIZE);
	}
	return room;
}

static uint32_t
report(struct peer *peer, int64_t now)
{
	uint32_t withheld = peer->withheld;

	peer->withheld = 0;
	peer->quiet = now + LIMITS_INTERVAL;
	return withheld;
}

bool
limits_report(struct limits *limits, const uint8_t address[SHAI_ADDRESS_SIZE], int64_t now,
    uint32_t *withheld)
{
	uint8_t wanted[SHAI_ADDRESS_SIZE];
	struct peer *peer;

	limits_network(address, wanted);
	peer = entry(limits, wanted, now);
	if (peer == NULL)
		peer = &limits->others;
	if (now < peer->quiet) {
		peer->withheld++;
		return false;
	}
	*withheld = report(peer, now);
	return true;
}

const struct peer *
limits_due(struct limits *limits, int64_t now, uint32_t *withheld)
{
	struct peer *due =
	    limits->others.withheld > 0 && limits->others.quiet <= now ? &limits->others : NULL;

	for (size_t i = 0; i < LIMITS_PEERS && due == NULL; i++)
		if (limits->peer[i].withheld > 0 && limits->peer[i].quiet <= now)
			due = &limits->peer[i];
	if (due != NULL)
		*withheld = report(due, now);
	return due;
}

int64_t
limits_deadline(const struct limits *limits)
{
	int64_t earliest = limits->others.withheld > 0 ? limits->others.quiet : INT64_MAX;

	for (size_t i = 0; i < LIMITS_PEERS; i++)
		if (limits->peer[i].withheld > 0 && limits->peer[i].quiet < earliest)
			earliest = limits->peer[i].quiet;
	return earliest;
}
