/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfers.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "channels.h"
#include "documents.h"
#include "monitor.h"
#include "sessions.h"

#define AT_ONCE 16         /* transfers of one channel in one turn: others have theirs, too */
#define LOOK_EACH SECOND   /* at channels that workers read */
#define DRAINED_MAX 4096   /* more than a channel holds */
#define QUERIES_AHEAD 1024 /* queries in a row that nobody answers */
#define QUERY_TIME (MILLISECOND / 100) /* a worker that reads the channel itself asks no faster */
#define APART (UINT32_C(1) << 28)      /* numbers of two sessions in a row; they have 30 bits */

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
 * How far the number of the next query may be ahead of the latest transfer's. What a worker has
 * read itself since then is not known here.
 */
static uint32_t
ahead_max(const struct session *session, const struct end *end)
{
	int64_t unseen =
	    session->conversation.gated ? (loop_now() - end->answered) / QUERY_TIME : 0;

	return unseen < UINT32_MAX - QUERIES_AHEAD ? QUERIES_AHEAD + (uint32_t)unseen : UINT32_MAX;
}

/*
 * Whether a transfer answers a query of the session. A late answer to the slot's former
 * session does not. Numbers that only rise, by little, cannot spell out a text.
 */
static bool
is_of_session(const struct session *session, struct end *end, const struct shai_transfer *transfer)
{
	if (transfer->query - end->query > ahead_max(session, end))
		return false;
	end->query = transfer->query;
	end->answered = loop_now();
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
		documents_ask(s, session, &question.header);
	return question.count > 0;
}

/* Holds a transfer until all of its numbers are permitted, and passes it on to the worker. */
static void
pass_on(struct supervisor *s, struct session *session, struct bytes record)
{
	memcpy(&session->transfer.record, record.start, record.length);
	session->transfer.length = record.length;
	/* In the dynamic modes the monitor has decided when the record was sent; audit stops
	 * nothing. */
	if (session->mode != SHAI_MODE_SHAI || !ask(s, session))
		send_held(s, session);
}

/* Takes a record from an end of the slot's session. Without a user it is dropped. */
static void
take(struct supervisor *s, struct session *session, struct end *end, struct bytes record)
{
	const char *problem = channel_check(record);

	if (session->state != SESSION_BOUND)
		return;
	if (problem != NULL)
		violate(session, problem);
	else if (is_of_session(session, end, record.start))
		pass_on(s, session, record);
}

void
transfers_judge(struct supervisor *s, struct session *session, struct bytes record)
{
	const char *problem = channel_check(record);

	if (problem != NULL)
		violate(session, problem);
	else
		pass_on(s, session, record);
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
	return (end->use == SHAI_END_READ_CHECKED) == shai_mode_is_dynamic(mode);
}

/* Watches an end for records, or not. Then only an error is reported, and once. */
static void
watch(struct end *end, bool paused, bool gated)
{
	bool was_watched = !end->paused && !end->gated;

	end->paused = paused;
	end->gated = gated;
	if (was_watched != (!paused && !gated))
		loop_change(&end->channel, was_watched ? EPOLLONESHOT : EPOLLIN | EPOLLRDHUP);
}

static void
pause(struct end *end)
{
	watch(end, true, end->gated);
}

static void
resume(struct end *end)
{
	watch(end, false, end->gated);
}

void
transfers_leave(struct supervisor *s, struct slot *slot)
{
	for (uint32_t i = 0; i < slot->count; i++) {
		struct end *end = &slot->end[i];

		if (end->use != SHAI_END_READ)
			continue;
		watch(end, end->paused, true);
		end->unread.length = 0;
		if (s->channels_due == 0)
			s->channels_due = loop_now() + LOOK_EACH;
	}
}

/* Whether the record that waits for a worker is the one of the last look. */
static bool
lies_there(struct end *end)
{
	struct unread now = {.length = 0};

	now.length = recv(end->channel.descriptor, &now.head, sizeof(now.head),
	    MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	if (now.length > 0 && memcmp(&now, &end->unread, sizeof(now)) == 0)
		return true;
	end->unread = now;
	return false;
}

int64_t
transfers_tend(struct supervisor *s)
{
	bool gated = false;

	if (s->channels_due == 0 || loop_now() < s->channels_due)
		return s->channels_due == 0 ? INT64_MAX : s->channels_due;
	for (uint32_t i = 0; i < s->settings.slots; i++)
		for (uint32_t j = 0; j < s->slot[i].count; j++) {
			struct end *end = &s->slot[i].end[j];

			gated = gated || end->gated;
			if (end->gated && lies_there(end))
				watch(end, end->paused, false);
		}
	s->channels_due = gated ? loop_now() + LOOK_EACH : 0;
	return s->channels_due == 0 ? INT64_MAX : s->channels_due;
}

void
transfers_take_back(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->count; i++)
		watch(&slot->end[i], slot->end[i].paused, false);
}

static void
channel_ready(struct source *source, uint32_t events)
{
	struct session *session = source->owner;
	struct end *end = (struct end *)((char *)source - offsetof(struct end, channel));
	struct arrival arrival;

	for (int i = 0; i < AT_ONCE && !end->gated; i++) {
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
			take(session->supervisor, session, end,
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

int
transfers_draw_nonce(struct slot *slot, uint8_t nonce[SHAI_NONCE_SIZE])
{
	const uint32_t former = slot->first_query;
	uint32_t next;

	do {
		if (getrandom(nonce, SHAI_NONCE_SIZE, 0) != SHAI_NONCE_SIZE)
			return -1;
		next = shai_first_query(nonce);
	} while (next - former < APART || former - next < APART);
	return 0;
}

void
transfers_begin(struct session *session)
{
	struct slot *slot = &session->supervisor->slot[session->slot];

	slot->first_query = shai_first_query(session->nonce);
	for (uint32_t i = 0; i < slot->count; i++) {
		slot->end[i].query = slot->first_query;
		slot->end[i].answered = loop_now();
	}
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
