/* SPDX-License-Identifier: BSD-2-Clause */
#include "interests.h"

#include <stdio.h>
#include <string.h>

#include "tuples.h"

#define QUERY_MAX 1024 /* of a query; a fault writes it as a topic */
#define CONTENT_MAX (2 * QUERY_MAX + 16)

struct histories {
	struct topic_counts counts;
	struct text newest; /* the query that was searched for last */
};

static bool
read_history(struct worker *worker, const struct keyvalue_user *user, enum keyvalue_history history,
    struct histories *histories)
{
	redisReply *reply = keyvalue_history(&worker->keyvalue, user, history);

	if (reply == NULL)
		return false;
	for (size_t i = 0; i < reply->elements; i++) {
		const redisReply *entry = reply->element[i];

		if (entry->type != REDIS_REPLY_STRING)
			continue;
		topics_count(&worker->assets->topics, &histories->counts, entry->str, entry->len);
		if (i == 0 && history == KEYVALUE_QUERIES)
			text_append(&histories->newest, entry->str, entry->len);
	}
	freeReplyObject(reply);
	return true;
}

/* Writes the topics' tuple. Returns the HTTP status. */
static int
write_topics(struct worker *worker, const struct keyvalue_user *user, const struct text *content,
    struct interests *interests)
{
	char key[SHAI_NAME_MAX + 8];

	if (shai_mode() == SHAI_MODE_BASELINE)
		return keyvalue_set_topics(&worker->keyvalue, user, content->data, content->length)
			   ? 200
			   : tuples_failed(worker, "write your topics", interests->reason,
				 sizeof interests->reason);
	snprintf(key, sizeof key, "topics:%s", user->name);
	if (shai_write(&worker->session, key, content->data, content->length, SHAI_WRITE_REPLACE) ==
	    0)
		return 200;
	snprintf(
	    interests->reason, sizeof interests->reason, "write your topics: %s", shai_reason());
	return 403;
}

int
interests_update(struct worker *worker, struct interests *interests)
{
	const struct topics *topics = &worker->assets->topics;
	char newest[QUERY_MAX], storage[CONTENT_MAX];
	struct histories histories = {0};
	size_t chosen[TOPICS_CHOSEN_MAX];
	struct keyvalue_user user;
	struct text content;

	text_init(&histories.newest, newest, sizeof newest);
	text_init(&content, storage, sizeof storage);
	/* One after the other: a session has little memory. */
	if (!tuples_begin(worker, &user) ||
	    !read_history(worker, &user, KEYVALUE_QUERIES, &histories) ||
	    !read_history(worker, &user, KEYVALUE_CLICKS, &histories))
		return tuples_failed(
		    worker, "read your histories", interests->reason, sizeof interests->reason);
	interests->count = topics_choose(topics, &histories.counts, chosen);
	for (size_t i = 0; i < interests->count; i++) {
		interests->topic[i] = topics->name[chosen[i]];
		topics_line(&content, interests->topic[i], strlen(interests->topic[i]));
	}
	if (worker->settings->fault == FAULT_QUERY_AS_TOPIC) {
		text_init(&content, storage, sizeof storage);
		topics_line(&content, histories.newest.data, histories.newest.length);
	}
	return write_topics(worker, &user, &content, interests);
}
