/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <stdio.h>
#include <string.h>

#include "sessions.h"

static bool
same_network(const uint8_t one[SHAI_ADDRESS_SIZE], const uint8_t other[SHAI_ADDRESS_SIZE])
{
	uint8_t left[SHAI_ADDRESS_SIZE], right[SHAI_ADDRESS_SIZE];

	limits_network(one, left);
	limits_network(other, right);
	return memcmp(left, right, SHAI_ADDRESS_SIZE) == 0;
}

/* How many sessions of a peer that began before a time are without a user. */
static uint32_t
waiting(const struct supervisor *s, const uint8_t peer[SHAI_ADDRESS_SIZE], int64_t before)
{
	const struct session *session;
	uint32_t count = 0;

	for (session = TAILQ_FIRST(&s->unsettled); session != NULL;
	     session = TAILQ_NEXT(session, unsettled)) {
		if (session_lives(session) && session->user == NULL && session->began < before &&
		    same_network(session->peer, peer))
			count++;
	}
	return count;
}

uint32_t
crowd_size(const void *supervisor, const uint8_t peer[SHAI_ADDRESS_SIZE])
{
	return waiting(supervisor, peer, INT64_MAX);
}

bool
crowd_refuses(const struct supervisor *s, const uint8_t peer[SHAI_ADDRESS_SIZE], int64_t now)
{
	uint32_t limit = s->settings.per_peer;

	return limit > 0 && waiting(s, peer, now - CROWD_HURRY) >= limit;
}

bool
crowd_exceeds(const struct supervisor *s, const struct session *session)
{
	uint32_t limit = s->settings.per_peer;

	return limit > 0 && session->user == NULL && crowd_size(s, session->peer) > limit;
}

void
crowd_reason(const struct supervisor *s, char reason[SHAI_REASON_MAX])
{
	(void)snprintf(reason, SHAI_REASON_MAX,
	    "only %u connections from one address may be without a user for more than %us",
	    s->settings.per_peer, (unsigned)(CROWD_HURRY / SECOND));
}
