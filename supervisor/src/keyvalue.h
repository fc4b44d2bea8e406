/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A slot's connection to the key-value store. It is authenticated as the user of one
 * session after the other, and is reset between two: a session finds nothing of what the
 * former one left on it. Nothing here blocks. Times are of a monotonic clock, in
 * nanoseconds.
 *
 * A worker may leave a half-sent command behind, which would swallow the next bytes as its
 * own. So the secret name of RESET is not sent at once, but first a command of a random
 * name that the store does not know. Only the error that quotes it, which nobody could
 * forge before, shows that the store expects a command now, and owes no reply.
 */
#ifndef SUPERVISOR_KEYVALUE_H
#define SUPERVISOR_KEYVALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "shai_supervision.h"

enum keyvalue_state {
	KEYVALUE_CLOSED,    /* no connection; a login makes one */
	KEYVALUE_CLEAN,     /* connected, without a user */
	KEYVALUE_LOGIN,     /* the user's authentication is sent */
	KEYVALUE_READY,     /* authenticated: the session's worker may get the descriptor */
	KEYVALUE_PROBE,     /* the random command is sent */
	KEYVALUE_RESETTING, /* RESET is sent */
};

struct keyvalue;

/*
 * Returns a closed connection to a store, or NULL if there is no memory. The store's
 * record must outlive it.
 */
struct keyvalue *keyvalue_new(const struct shai_control_store *store);
void keyvalue_free(struct keyvalue *keyvalue); /* may be NULL */

/*
 * Begins to authenticate as a user. The state must be CLEAN or CLOSED; it becomes LOGIN,
 * or CLOSED when that fails.
 */
void keyvalue_login(struct keyvalue *keyvalue, const char *user, const char *password, int64_t now);

/*
 * Begins to take the user from the connection, after the worker's end: whoever still has
 * the descriptor could use the next user's. The state becomes PROBE, then RESETTING, then
 * CLEAN; or CLOSED when that fails or lasts longer than KEYVALUE_TIMEOUT.
 */
void keyvalue_reset(struct keyvalue *keyvalue, int64_t now);

/* Goes on when the descriptor is ready, or the deadline is over. */
void keyvalue_continue(struct keyvalue *keyvalue, int64_t now);

enum keyvalue_state keyvalue_state(const struct keyvalue *keyvalue);

/* The descriptor, which belongs to the connection and blocks; -1 in state CLOSED. */
int keyvalue_descriptor(const struct keyvalue *keyvalue);

/*
 * What to wait for on the descriptor (EPOLLIN, EPOLLOUT); 0: it must not be watched. It
 * changes with each of the calls above, as the descriptor does.
 */
uint32_t keyvalue_events(const struct keyvalue *keyvalue);

/* When keyvalue_continue must be called at the latest; INT64_MAX: never. */
int64_t keyvalue_deadline(const struct keyvalue *keyvalue);

/* Why the connection was closed the last time; never NULL. */
const char *keyvalue_reason(const struct keyvalue *keyvalue);

#define KEYVALUE_TIMEOUT INT64_C(2000000000)

#endif
