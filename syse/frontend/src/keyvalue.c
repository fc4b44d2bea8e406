/* SPDX-License-Identifier: BSD-2-Clause */
#include "keyvalue.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define KEY_MAX 256 /* "history:", a principal, "/" and a region */

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

static void
append_command(struct keyvalue *keyvalue, int count, const char **words, const size_t *lengths)
{
	redisAppendCommandArgv(keyvalue->context, count, words, lengths);
}

/* Queues the three commands without sending them. */
static void
append_commands(struct keyvalue *keyvalue, const char *user, const char *region, const char *query,
    size_t query_length)
{
	char profile[KEY_MAX], history[KEY_MAX], last[16];
	size_t profile_length = (size_t)snprintf(profile, sizeof profile, "profile:%s", user);
	size_t history_length =
	    (size_t)snprintf(history, sizeof history, "history:%s/%s", user, region);
	size_t last_length = (size_t)snprintf(last, sizeof last, "%d", KEYVALUE_HISTORY_MAX - 1);
	const char *get[] = {"GET", profile};
	const char *push[] = {"LPUSH", history, query};
	const char *trim[] = {"LTRIM", history, "0", last};

	append_command(keyvalue, 2, get, (size_t[]){3, profile_length});
	append_command(keyvalue, 3, push, (size_t[]){5, history_length, query_length});
	append_command(keyvalue, 4, trim, (size_t[]){5, history_length, 1, last_length});
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

static bool
skip_reply(struct keyvalue *keyvalue, const char *what, int timeout_milliseconds)
{
	redisReply *reply = good_reply(keyvalue, what, timeout_milliseconds);

	if (reply == NULL)
		return false;
	freeReplyObject(reply);
	return true;
}

redisReply *
keyvalue_query(struct keyvalue *keyvalue, const char *user, const char *region, const char *query,
    size_t query_length, int timeout_milliseconds)
{
	redisReply *profile;

	append_commands(keyvalue, user, region, query, query_length);
	if (!send_commands(keyvalue))
		return NULL;
	profile = good_reply(keyvalue, "read the user's profile", timeout_milliseconds);
	if (profile == NULL)
		return NULL;
	if (profile->type != REDIS_REPLY_STRING && profile->type != REDIS_REPLY_NIL) {
		freeReplyObject(profile);
		failed(keyvalue, "read the user's profile", "the store's answer is not a string");
		return NULL;
	}
	if (!skip_reply(keyvalue, "append to the search history", timeout_milliseconds) ||
	    !skip_reply(keyvalue, "shorten the search history", timeout_milliseconds)) {
		freeReplyObject(profile);
		return NULL;
	}
	return profile;
}
