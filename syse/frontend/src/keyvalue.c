/* SPDX-License-Identifier: BSD-2-Clause */
#include "keyvalue.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static bool
failed(struct keyvalue *keyvalue, const char *what, const char *cause)
{
	snprintf(keyvalue->storage, sizeof keyvalue->storage, "%s: %s", what, cause);
	keyvalue->reason = keyvalue->storage;
	keyvalue_release(keyvalue);
	return false;
}

bool
keyvalue_adopt(struct keyvalue *keyvalue, int descriptor)
{
	keyvalue->context = redisConnectFd(descriptor);
	keyvalue->borrowed = true;
	if (keyvalue->context == NULL || keyvalue->context->err != 0)
		return failed(keyvalue, "use the key-value connection", "out of memory");
	return true;
}

bool
keyvalue_connect(struct keyvalue *keyvalue, const char *socket_path)
{
	keyvalue->context = redisConnectUnix(socket_path);
	keyvalue->borrowed = false;
	if (keyvalue->context == NULL)
		return failed(keyvalue, "connect to the key-value store", "out of memory");
	if (keyvalue->context->err != 0)
		return failed(keyvalue, socket_path, keyvalue->context->errstr);
	return true;
}

void
keyvalue_release(struct keyvalue *keyvalue)
{
	if (keyvalue->context == NULL)
		return;
	if (keyvalue->borrowed)
		redisFreeKeepFd(keyvalue->context);
	else
		redisFree(keyvalue->context);
	keyvalue->context = NULL;
}

static const char *const HISTORIES[] = {"history", "clicks"};

/* Queues the commands that put an entry at the head of a history, without sending them. */
static void
append_entry(struct keyvalue *keyvalue, const struct keyvalue_user *user,
    enum keyvalue_history history, const char *entry, size_t size)
{
	redisAppendCommand(keyvalue->context, "LPUSH %s:%s/%s %b", HISTORIES[history], user->name,
	    user->region, entry, size);
	redisAppendCommand(keyvalue->context, "LTRIM %s:%s/%s 0 %d", HISTORIES[history], user->name,
	    user->region, KEYVALUE_HISTORY_MAX - 1);
}

static bool
send_commands(struct keyvalue *keyvalue)
{
	int done = 0;

	while (!done)
		if (redisBufferWrite(keyvalue->context, &done) != REDIS_OK)
			return failed(
			    keyvalue, "write to the key-value store", keyvalue->context->errstr);
	return true;
}

/* Returns the next reply, or NULL. hiredis itself has no time limit for this. */
static redisReply *
next_reply(struct keyvalue *keyvalue, int timeout_milliseconds)
{
	for (;;) {
		struct pollfd readable = {.fd = keyvalue->context->fd, .events = POLLIN};
		void *reply = NULL;
		int ready;

		if (redisGetReplyFromReader(keyvalue->context, &reply) != REDIS_OK) {
			failed(
			    keyvalue, "read from the key-value store", keyvalue->context->errstr);
			return NULL;
		}
		if (reply != NULL)
			return reply;
		do
			ready = poll(&readable, 1, timeout_milliseconds);
		while (ready < 0 && errno == EINTR);
		if (ready <= 0) {
			failed(keyvalue, "read from the key-value store",
			    ready == 0 ? "no answer in time" : strerror(errno));
			return NULL;
		}
		if (redisBufferRead(keyvalue->context) != REDIS_OK) {
			failed(
			    keyvalue, "read from the key-value store", keyvalue->context->errstr);
			return NULL;
		}
	}
}

/* Returns the next reply, or NULL if it is an error. */
static redisReply *
good_reply(struct keyvalue *keyvalue, const char *what, int timeout_milliseconds)
{
	redisReply *reply = next_reply(keyvalue, timeout_milliseconds);

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
		failed(keyvalue, what, reply->str);
		freeReplyObject(reply);
		return NULL;
	}
	return reply;
}

/* Returns the next reply if it is a string or nil. */
static redisReply *
string_reply(struct keyvalue *keyvalue, const char *what, int timeout_milliseconds)
{
	redisReply *reply = good_reply(keyvalue, what, timeout_milliseconds);

	if (reply == NULL || reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL)
		return reply;
	freeReplyObject(reply);
	failed(keyvalue, what, "the store's answer is not a string");
	return NULL;
}

static bool
skip_reply(struct keyvalue *keyvalue, const char *what, int timeout_milliseconds)
{
	redisReply *reply = good_reply(keyvalue, what, timeout_milliseconds);

	if (reply == NULL)
		return false;
	freeReplyObject(reply);
	return true;
}

/* Skips the replies to append_entry. */
static bool
skip_entry(struct keyvalue *keyvalue, int timeout_milliseconds)
{
	return skip_reply(keyvalue, "append to a history", timeout_milliseconds) &&
	       skip_reply(keyvalue, "shorten a history", timeout_milliseconds);
}

bool
keyvalue_query(struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *query,
    size_t query_length, redisReply **profile, redisReply **topics)
{
	int timeout = user->timeout_milliseconds;

	*profile = *topics = NULL;
	redisAppendCommand(keyvalue->context, "GET profile:%s", user->name);
	redisAppendCommand(keyvalue->context, "GET topics:%s", user->name);
	append_entry(keyvalue, user, KEYVALUE_QUERIES, query, query_length);
	if (!send_commands(keyvalue))
		return false;
	*profile = string_reply(keyvalue, "read the user's profile", timeout);
	if (*profile != NULL)
		*topics = string_reply(keyvalue, "read the user's topics", timeout);
	if (*topics != NULL && skip_entry(keyvalue, timeout))
		return true;
	freeReplyObject(*profile);
	freeReplyObject(*topics);
	*profile = *topics = NULL;
	return false;
}

bool
keyvalue_click(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *entry, size_t size)
{
	append_entry(keyvalue, user, KEYVALUE_CLICKS, entry, size);
	return send_commands(keyvalue) && skip_entry(keyvalue, user->timeout_milliseconds);
}

redisReply *
keyvalue_history(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, enum keyvalue_history history)
{
	redisReply *reply;

	redisAppendCommand(keyvalue->context, "LRANGE %s:%s/%s 0 %d", HISTORIES[history],
	    user->name, user->region, KEYVALUE_HISTORY_MAX - 1);
	if (!send_commands(keyvalue))
		return NULL;
	reply = good_reply(keyvalue, "read a history", user->timeout_milliseconds);
	if (reply == NULL || reply->type == REDIS_REPLY_ARRAY)
		return reply;
	freeReplyObject(reply);
	failed(keyvalue, "read a history", "the store's answer is not a list");
	return NULL;
}

bool
keyvalue_set_topics(
    struct keyvalue *keyvalue, const struct keyvalue_user *user, const char *content, size_t size)
{
	redisAppendCommand(keyvalue->context, "SET topics:%s %b", user->name, content, size);
	return send_commands(keyvalue) &&
	       skip_reply(keyvalue, "set the user's topics", user->timeout_milliseconds);
}
