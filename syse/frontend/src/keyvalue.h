/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A session's connection to the key-value store: the user's profile, histories and topics. The
 * store decides which tuples the connection can use.
 */
#ifndef SYSE_KEYVALUE_H
#define SYSE_KEYVALUE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

#define KEYVALUE_HISTORY_MAX 100 /* entries kept in each history */

struct keyvalue {
	redisContext *context; /* NULL when there is no connection */
	bool borrowed;         /* the descriptor belongs to the session, which closes it */
	const char *reason;    /* why the last call failed; valid until the next */
	char storage[256];
};

/*
 * Whose tuples are used. There are histories for each region: the results of a search depend on
 * the region, and a history may be read only where its queries could be made.
 */
struct keyvalue_user {
	const char *name, *region;
	int timeout_milliseconds; /* for each answer */
};

enum keyvalue_history {
	KEYVALUE_QUERIES, /* what the user searched for */
	KEYVALUE_CLICKS   /* the results that the user opened */
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
 * The calls below fail with the cause in keyvalue->reason; the connection is then released. The
 * caller frees replies with freeReplyObject.
 */

/*
 * In one round trip, reads the user's profile and topics, and puts the query at the head of the
 * user's search history. The replies are strings, or nil for what the user does not have; both are
 * NULL after a failure.
 */
bool keyvalue_query(struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *query,
    size_t query_length, redisReply **profile, redisReply **topics);

/* Puts an entry at the head of the history of clicks. */
bool keyvalue_click(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *entry, size_t size);

/* Returns a history as an array of strings, the newest first, or NULL after a failure. */
redisReply *keyvalue_history(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, enum keyvalue_history history);

/* Sets the user's topics, in mode baseline: otherwise only the monitor writes them. */
bool keyvalue_set_topics(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *content, size_t size);

#endif
