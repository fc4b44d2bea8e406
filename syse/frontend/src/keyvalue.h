/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A session's connection to the key-value store: the user's profile and search
 * history. The store decides which tuples the connection can use.
 */
#ifndef SYSE_KEYVALUE_H
#define SYSE_KEYVALUE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define KEYVALUE_HISTORY_MAX 100 /* entries kept per user */

struct keyvalue {
	redisContext *context; /* NULL when there is no connection */
	bool borrowed;         /* the descriptor belongs to the session, which closes it */
	const char *reason;    /* why the last call failed; valid until the next */
	char storage[256];
};

/*
 * Uses a connection that comes with the session, authenticated as its user. The descriptor
 * is borrowed. Returns whether this worked.
 */
bool keyvalue_adopt(struct keyvalue *keyvalue, int descriptor);

/* Connects without any restriction, for mode baseline. Returns whether this worked. */
bool keyvalue_connect(struct keyvalue *keyvalue, const char *socket_path);

void keyvalue_release(struct keyvalue *keyvalue);

/*
 * In one round trip, reads the user's profile and puts the query at the head of the
 * user's search history for this region. There is a history for each region: the results
 * of a search depend on the region, and a history may be read only where its queries
 * could be made.
 *
 * Returns the profile as a string reply, or a nil reply if the user has none; the caller
 * frees it with freeReplyObject. Returns NULL on failure, with the cause in
 * keyvalue->reason; the connection is then released.
 */
redisReply *keyvalue_query(struct keyvalue *keyvalue, const char *user, const char *region,
    const char *query, size_t query_length, int timeout_milliseconds);

#endif
