/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfers.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "channels.h"
#include "documents.h"
#include "monitor.h"
#include "sessions.h"

#define AT_ONCE 16         /* transfers of one channel in one turn: others have theirs, too */
#define DRAINED_MAX 4096   /* more than a channel holds */
#define QUERIES_AHEAD 1024 /* queries in a row that nobody answers */

/* A record of a channel, with room to see that it is too long. */
struct arrival {
	_Alignas(8) uint8_t bytes[sizeof(struct shai_transfer) + 8];
};

static void
violate(struct session *session, const char *problem)
{
	struct shai_control_event *event;

	/* Another task wrote the record: it must not fill the log, nor end the session. */
	if (session->violated)
		return;
	session->violated = true;
	event = monitor_event(SHAI_EVENT_VIOLATION, session);
	(void)snprintf(event->reason, sizeof(event->reason),
	    "the session's channel carried %s; it was dropped, as are others like it", problem);
}

/*
 * Whether a transfer answers a query of the session. A late answer to the slot's former
 * session does not. Numbers that only rise, by little, cannot spell out a text.
 */
static bool
is_of_session(struct end *end, const struct shai_transfer *transfer)
{
	if (transfer->query - end->query > QUERIES_AHEAD)
		return false;
	end->query = transfer->query;
	return true;
}

static void
send_held(struct supervisor *s, struct session *session)
{
	struct {
		struct shai_header header;
		struct shai_transfer transfer;
	} message;
	size_t size = sizeof(message.header) + session->transfer.length;

	message.header = session_header(SHAI_TRANSFER, size, 0);
	message.transfer = session->transfer.record;
	(void)session_send(s, session, &message, size, NULL);
}

/*
 * Asks the monitor about the numbers outside of the session's set. Returns false if there
 * are none. The monitor records those that it refuses.
 */
static bool
ask(struct supervisor *s, struct session *session)
{
	struct transfer *held = &session->transfer;
	struct shai_open question = {.header = session_header(SHAI_OPEN, sizeof(question), 0)};
	size_t count = (held->length - offsetof(struct shai_transfer, conduit)) /
		       sizeof(held->record.conduit[0]);

	for (size_t i = 0; i < count; i++) {
		uint32_t id = held->record.conduit[i];

		if (id == 0 || documents_includes(s, session, id))
			continue;
		held->asked[question.count] = (uint8_t)i;
		question.conduit[question.count++] = id;
	}
	held->asked_count = question.count;
	if (question.count > 0)
		documents_ask(s, session, &question);
	return question.count > 0;
}

/* Passes a transfer on to the worker of the slot's session. Without a user it is dropped. */
static void
pass_on(struct supervisor *s, struct session *session, struct end *end, struct bytes record)
{
	const char *problem = channel_check(record);

	if (session->state != SESSION_BOUND)
		return;
	if (problem != NULL) {
		violate(session, problem);
		return;
	}
	if (!is_of_session(end, record.start))
		return;
	memcpy(&session->transfer.record, record.start, record.length);
	session->transfer.length = record.length;
	/* In mode dynamic the monitor has decided when the record was sent; audit stops nothing. */
	if (session->mode != SHAI_MODE_SHAI || !ask(s, session))
		send_held(s, session);
}

bool
transfers_answered(struct supervisor *s, struct session *session, struct bytes message)
{
	struct transfer *held = &session->transfer;
	const struct shai_opened *answer = message.start;

	if (held->asked_count == 0)
		return false;
	if (message.length != sizeof(*answer) || answer->header.type != SHAI_OPENED ||
	    answer->count != held->asked_count) {
		held->asked_count = 0;
		session_end(
		    s, session, "the monitor has not answered the question about a transfer");
		return true;
	}
	for (size_t i = 0; i < held->asked_count; i++)
		if (answer->status[i] != 0)
			held->record.conduit[held->asked[i]] = 0;
	held->asked_count = 0;
	send_held(s, session);
	return true;
}

/* Whether transfers of a channel are for sessions in this mode. */
static bool
carries(const struct end *end, enum shai_mode mode)
{
	return (end->use == SHAI_END_READ_CHECKED) == (mode == SHAI_MODE_DYNAMIC);
}

/* Reads no more until the monitor has answered. Only an error is reported, and once. */
static void
pause(struct end *end)
{
	if (!end->paused)
		loop_change(&end->channel, EPOLLONESHOT);
	end->paused = true;
}

static void
resume(struct end *end)
{
	if (end->paused)
		loop_change(&end->channel, EPOLLIN | EPOLLRDHUP);
	end->paused = false;
}

static void
channel_ready(struct source *source, uint32_t events)
{
	struct session *session = source->owner;
	struct end *end = (struct end *)((char *)source - offsetof(struct end, channel));
	struct arrival arrival;

	for (int i = 0; i < AT_ONCE; i++) {
		struct descriptors came;
		ssize_t length;

		if (session->questioned) {
			pause(end);
			return;
		}
		length =
		    packet_receive(source->descriptor, arrival.bytes, sizeof(arrival.bytes), &came);
		descriptors_close(&came);
		if (length == 0 && (events & (EPOLLHUP | EPOLLRDHUP)) != 0) {
			loop_forget(source); /* nobody can write it any more */
			return;
		}
		if (length == 0) /* an empty record */
			continue;
		if (length > 0 && !carries(end, session->mode))
			continue;
		if (length > 0)
			pass_on(session->supervisor, session, end,
			    (struct bytes){arrival.bytes, (size_t)length, came.count});
		else if (errno == EMSGSIZE && session->state == SESSION_BOUND)
			violate(session, "a transfer of more conduits than it can have");
		else if (errno != EMSGSIZE)
			return;
	}
}

int
transfers_watch(struct end *end, struct session *session, int descriptor)
{
	end->channel.owner = session;
	end->channel.ready = channel_ready;
	return loop_watch(&end->channel, descriptor, EPOLLIN | EPOLLRDHUP);
}

void
transfers_begin(struct session *session)
{
	struct slot *slot = &session->supervisor->slot[session->slot];

	for (uint32_t i = 0; i < slot->count; i++)
		slot->end[i].query = shai_first_query(session->nonce);
}

void
transfers_resume(struct session *session)
{
	struct slot *slot = &session->supervisor->slot[session->slot];

	for (uint32_t i = 0; i < slot->count; i++)
		resume(&slot->end[i]);
}

void
transfers_drain(struct end *end)
{
	struct arrival arrival;
	struct descriptors came = {.count = 0};
	ssize_t length;

	resume(end);
	for (int i = 0; i < DRAINED_MAX && end->channel.descriptor >= 0; i++) {
		length = packet_receive(
		    end->channel.descriptor, arrival.bytes, sizeof(arrival.bytes), &came);
		descriptors_close(&came);
		if (length < 0 && errno != EMSGSIZE)
			return;
	}
}
