/* SPDX-License-Identifier: BSD-2-Clause */
#include "replies.h"

#include <hiredis/hiredis.h>
#include <sodium.h>
#include <string.h>

static bool
is_text(const char *text, size_t length, const char *wanted)
{
	return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

/* Whether an error says that the store does not know the random command. */
static bool
quotes_token(const struct replies *replies, const char *text, size_t length)
{
	static const char before[] = "ERR unknown command ";
	const size_t head = sizeof(before) - 1 + 1, token = sizeof(replies->token) - 1;

	return length > head + token && memcmp(text, before, sizeof(before) - 1) == 0 &&
	       memcmp(text + head, replies->token, token) == 0 &&
	       text[head - 1] == text[head + token];
}

/*
 * hiredis' reader calls these for each value. None is kept: the only question is what a
 * reply says, and a session's leftovers must not cost memory.
 */
static void *
other_value(const redisReadTask *task)
{
	struct replies *replies = task->privdata;

	if (task->parent == NULL)
		replies->last = REPLY_OTHER;
	return replies;
}

static void *
text_value(const redisReadTask *task, char *text, size_t length)
{
	struct replies *replies = other_value(task);

	if (task->parent != NULL)
		return replies;
	if (task->type == REDIS_REPLY_STATUS && is_text(text, length, "OK"))
		replies->last = REPLY_OK;
	else if (task->type == REDIS_REPLY_STATUS && is_text(text, length, "RESET"))
		replies->last = REPLY_RESET;
	else if (task->type == REDIS_REPLY_ERROR && quotes_token(replies, text, length))
		replies->last = REPLY_PROBE;
	return replies;
}

static void *
array_value(const redisReadTask *task, int count)
{
	(void)count;
	return other_value(task);
}

static void *
integer_value(const redisReadTask *task, long long value)
{
	(void)value;
	return other_value(task);
}

static void
free_value(void *value)
{
	(void)value;
}

static redisReplyObjectFunctions functions = {.createString = text_value,
    .createArray = array_value,
    .createInteger = integer_value,
    .createNil = other_value,
    .freeObject = free_value};

bool
replies_begin(struct replies *replies)
{
	replies->reader = redisReaderCreateWithFunctions(&functions);
	if (replies->reader == NULL)
		return false;
	replies->reader->privdata = replies;
	return true;
}

void
replies_end(struct replies *replies)
{
	if (replies->reader != NULL)
		redisReaderFree(replies->reader);
	replies->reader = NULL;
}

void
replies_draw_token(struct replies *replies)
{
	uint8_t random[REPLIES_TOKEN_SIZE];

	randombytes_buf(random, sizeof(random));
	sodium_bin2hex(replies->token, sizeof(replies->token), random, sizeof(random));
}

bool
replies_feed(struct replies *replies, const char *bytes, size_t length)
{
	return redisReaderFeed(replies->reader, bytes, length) == REDIS_OK;
}

enum reply
replies_next(struct replies *replies)
{
	void *whole = NULL;

	replies->last = REPLY_OTHER; /* kinds without a function, such as RESP3's */
	if (redisReaderGetReply(replies->reader, &whole) != REDIS_OK)
		return REPLY_BROKEN;
	return whole == NULL ? REPLY_NONE : replies->last;
}

bool
replies_empty(const struct replies *replies)
{
	return replies->reader->pos == replies->reader->len;
}
