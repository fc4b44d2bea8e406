/* SPDX-License-Identifier: BSD-2-Clause */
#include "search.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "tuples.h"

static int
failure(struct answer *answer, int status, const char *what, const char *cause)
{
	snprintf(answer->reason, sizeof answer->reason, "%s: %s", what, cause);
	return status;
}

/* Adds friends while the line stays within capacity. Returns whether all fitted. */
static bool
append_friends(struct text *line, const json_t *friends, size_t capacity)
{
	const json_t *element;
	bool first = true;
	size_t i;

	json_array_foreach(friends, i, element)
	{
		struct text before = *line;

		if (!json_is_string(element))
			continue;
		if (!first)
			text_string(line, ",");
		text_json_plain(line, json_string_value(element), json_string_length(element));
		if (line->overflowed || line->length > capacity) {
			*line = before;
			return false;
		}
		first = false;
	}
	return true;
}

bool
search_line(struct text *line, const struct worker *worker, uint32_t number, const json_t *friends,
    const char *text, size_t size, uint32_t count)
{
	char storage[SEARCH_LINE_MAX];
	struct text tail;
	bool complete;

	/* The parts that are required come first; friends get the remaining room. */
	text_init(&tail, storage, sizeof storage);
	text_string(&tail, "],\"text\":");
	text_json_plain(&tail, text, size);
	text_string(&tail, ",\"count\":");
	text_number(&tail, count);
	text_string(&tail, shai_mode_is_dynamic(worker->session.mode) ? ",\"checked\":true}\n"
								      : ",\"checked\":false}\n");
	text_string(line, "{\"query\":");
	text_number(line, number);
	text_string(line, ",\"user\":");
	text_json_plain(line, worker->principal, strlen(worker->principal));
	text_string(line, ",\"friends\":[");
	complete = append_friends(
	    line, friends, line->capacity > tail.length ? line->capacity - tail.length : 0);
	text_append(line, tail.data, tail.length);
	line->overflowed = line->overflowed || tail.overflowed;
	return complete;
}

/*
 * Sends the line in one write. Gives up after a time limit if the engine does not
 * read.
 */
static int
send_line(struct worker *worker, const struct text *line, struct answer *answer)
{
	struct pollfd writable = {.fd = worker->session.query_pipe, .events = POLLOUT};
	ssize_t written;
	int ready;

	do
		ready = poll(&writable, 1, worker->settings->answer_timeout);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return failure(answer, 504, "send the query to the search engine",
		    "it does not read its queries; is it running?");
	do
		written = write(worker->session.query_pipe, line->data, line->length);
	while (written < 0 && errno == EINTR);
	if (written < 0)
		return failure(answer, 502, "send the query to the search engine", strerror(errno));
	return 200; /* up to PIPE_BUF bytes, a write is complete or fails, pipe(7) */
}

static int
query_engine(struct worker *worker, const struct profile *profile, uint32_t number, uint32_t count,
    struct answer *answer)
{
	char storage[SEARCH_LINE_MAX];
	struct text line;

	text_init(&line, storage, sizeof storage);
	if (!search_line(&line, worker, number, profile->friends, answer->query,
		answer->query_length, count))
		answer->note = "Not all of your friends fitted into the query; documents of some "
			       "may be missing.";
	if (line.overflowed)
		return failure(
		    answer, 400, "send the query to the search engine", "it is too long");
	return send_line(worker, &line, answer);
}

static int
receive_status(const struct shai_session *session, struct answer *answer)
{
	if (errno == ETIMEDOUT && session->state == SHAI_SESSION_BOUND)
		return failure(answer, 504, "receive results from the search engine",
		    "no answer in time; it may be busy or not running, try again");
	return failure(answer, 502, "receive results from the search engine", shai_reason());
}

static int
receive_documents(struct worker *worker, const struct profile *profile, uint32_t number,
    uint32_t count, struct answer *answer)
{
	struct shai_document opened[SEARCH_COUNT_MAX];
	ssize_t received;

	worker->session.timeout_milliseconds = worker->settings->answer_timeout;
	received = shai_channel_receive(&worker->session, number, opened, count);
	if (received < 0)
		return receive_status(&worker->session, answer);
	answer->withheld = worker->session.withheld;
	for (ssize_t i = 0; i < received; i++) {
		struct document *document = &answer->documents[answer->count];

		document->id = opened[i].conduit;
		if (document_read(
			document, opened[i].descriptor, &answer->terms, &profile->interests) == 0)
			answer->count++;
		else
			answer->note = "A document could not be read and is left out.";
		close(opened[i].descriptor);
	}
	return 200;
}

/* Reads what is known of the user, and chooses the advertisement by it. */
static int
look_up_user(struct worker *worker, struct profile *profile, struct answer *answer)
{
	redisReply *reply, *topics;
	struct keyvalue_user user;

	if (!tuples_begin(worker, &user) || !keyvalue_query(&worker->keyvalue, &user, answer->query,
						answer->query_length, &reply, &topics))
		return tuples_failed(
		    worker, "look up your profile", answer->reason, sizeof answer->reason);
	if (!profile_parse(profile, reply->str, reply->type == REDIS_REPLY_STRING ? reply->len : 0))
		answer->note = "Your profile is not valid JSON; results are not personalised.";
	answer->advertisement = advertisements_choose(&worker->assets->advertisements,
	    answer->query, answer->query_length, topics->str,
	    topics->type == REDIS_REPLY_STRING ? topics->len : 0);
	freeReplyObject(reply);
	freeReplyObject(topics);
	return 200;
}

int
search_run(
    struct worker *worker, const char *text, size_t size, uint32_t count, struct answer *answer)
{
	static struct profile profile;
	uint32_t number = worker->next_query++;
	int status;

	answer->query = text;
	answer->query_length = size;
	answer->count = 0;
	answer->withheld = 0;
	answer->note = NULL;
	terms_split(&answer->terms, text, size);
	status = look_up_user(worker, &profile, answer);
	if (status != 200)
		return status;
	status = query_engine(worker, &profile, number, count, answer);
	if (status == 200)
		status = receive_documents(worker, &profile, number, count, answer);
	if (status == 200)
		document_personalise(answer->documents, answer->count);
	profile_release(&profile);
	return status;
}
