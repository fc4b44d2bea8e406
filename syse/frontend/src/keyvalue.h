/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A session's connection to the key-value store: the user's profile and search
 * history. Which tuples the connection reaches is the store's decision, not ours.
 */
#ifndef SYSE_KEYVALUE_H
#define SYSE_KEYVALUE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define KEYVALUE_HISTORY_MAX 100 /* entries kept per user */

struct keyvalue {
	redisContext *context; /* NULL when there is no connection */
	bool borrowed;         /* the descriptor is the session's, who closes it */
	bool greeted;          /* the reply to the monitor's authentication has been read */
	const char *reason;    /* why the last call failed; valid until the next */
	char storage[256];
};

/*
 * Uses a connection on which the monitor has sent the authentication and left
 * its reply unread. The descriptor is borrowed. Returns whether it worked.
 */
bool keyvalue_adopt(struct keyvalue *keyvalue, int descriptor);

/* Connects without any restriction: mode baseline. Returns whether it worked. */
bool keyvalue_connect(struct keyvalue *keyvalue, const char *socket_path);

void keyvalue_release(struct keyvalue *keyvalue);

/*
 * In one round trip: reads the user's profile and puts the query at the head of
 * the user's search history in this region: what a search shows depends on the
 * region, and a history may be read only where its queries could be. Returns the
 * profile as a string reply, or as a nil reply when the user has none; the caller
 * frees it with freeReplyObject. NULL on failure, with the cause in
 * keyvalue->reason; the connection is then released.
 */
redisReply *keyvalue_query(struct keyvalue *keyvalue, const char *user, const char *region,
    const char *query, size_t query_length, int timeout_milliseconds);

#endif
