/* SPDX-License-Identifier: BSD-2-Clause */
#include "slots.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "channels.h"
#include "monitor.h"
#include "sessions.h"

#define DRAINED_MAX 4096
#define AT_ONCE 16 /* transfers of one channel in one turn: others have theirs, too */

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

/* Passes a transfer on to the worker of the slot's session. Without a user it is dropped. */
static void
pass_on(struct supervisor *s, struct session *session, struct bytes record)
{
	struct {
		struct shai_header header;
		struct shai_transfer transfer;
	} message;
	size_t size = sizeof(message.header) + record.length;
	const char *problem = channel_check(record);

	if (session->state != SESSION_BOUND)
		return;
	if (problem != NULL) {
		violate(session, problem);
		return;
	}
	message.header = session_header(SHAI_TRANSFER, size, 0);
	memcpy(&message.transfer, record.start, record.length);
	(void)session_send(s, session, &message, size, NULL);
}

/* Whether transfers of a channel are for sessions in this mode. */
static bool
carries(const struct source *channel, enum shai_mode mode)
{
	const struct end *end =
	    (const struct end *)((const char *)channel - offsetof(struct end, channel));

	return (end->use == SHAI_END_READ_CHECKED) == (mode == SHAI_MODE_DYNAMIC);
}

static void
channel_ready(struct source *source, uint32_t events)
{
	struct session *session = source->owner;
	struct arrival arrival;

	for (int i = 0; i < AT_ONCE; i++) {
		struct descriptors came;
		ssize_t length =
		    packet_receive(source->descriptor, arrival.bytes, sizeof(arrival.bytes), &came);
		struct bytes record = {arrival.bytes, (size_t)length, came.count};

		descriptors_close(&came);
		if (length == 0 && (events & (EPOLLHUP | EPOLLRDHUP)) != 0) {
			loop_forget(source); /* nobody can write it any more */
			return;
		}
		if (length == 0) /* an empty record */
			continue;
		if (length > 0 && !carries(source, session->mode))
			continue;
		if (length > 0)
			pass_on(session->supervisor, session, record);
		else if (errno == EMSGSIZE && session->state == SESSION_BOUND)
			violate(session, "a transfer of more conduits than it can have");
		else if (errno != EMSGSIZE)
			return;
	}
}

/*
 * What was sent to the former session must not reach the next one. A channel holds fewer
 * records than are read here: a writer that goes on could as well write later.
 */
static void
drain(struct source *channel)
{
	struct arrival arrival;
	struct descriptors came = {.count = 0};
	ssize_t length;

	for (int i = 0; i < DRAINED_MAX && channel->descriptor >= 0; i++) {
		length = packet_receive(
		    channel->descriptor, arrival.bytes, sizeof(arrival.bytes), &came);
		descriptors_close(&came);
		if (length < 0 && errno != EMSGSIZE)
			return;
	}
}

void
slots_begin(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		s->session[i].supervisor = s;
		s->session[i].slot = i;
		s->session[i].socket.descriptor = -1;
		s->slot[i].store_socket.descriptor = -1;
		for (size_t j = 0; j < SHAI_SLOT_ENDS_MAX; j++)
			s->slot[i].end[j] =
			    (struct end){.descriptor = -1, .channel.descriptor = -1};
	}
}

int
slot_define(struct supervisor *s, const struct shai_control_slot *record, struct descriptors *ends)
{
	struct slot *slot = &s->slot[record->slot];

	if (record->slot >= s->settings.slots || slot->present || s->running)
		return -1;
	slot->present = true;
	slot->count = record->count;
	for (uint32_t i = 0; i < record->count; i++) {
		struct end *end = &slot->end[i];
		int descriptor = descriptors_take(ends, i);

		end->number = record->end[i].number;
		end->use = (enum shai_end_use)record->end[i].use;
		if (end->use == SHAI_END_GIVE) {
			end->descriptor = descriptor;
			continue;
		}
		end->channel.owner = &s->session[record->slot];
		end->channel.ready = channel_ready;
		if (loop_watch(&end->channel, descriptor, EPOLLIN | EPOLLRDHUP) != 0)
			return -1;
	}
	return 0;
}

struct session *
slot_free(struct supervisor *s)
{
	for (; s->taken < s->settings.slots; s->taken++)
		if (s->slot[s->taken].present && s->session[s->taken].state == SESSION_NONE)
			return &s->session[s->taken];
	return NULL;
}

static void store_ready(struct source *source, uint32_t events);

/* Watches the connection for what it waits for. Its descriptor may have changed. */
static void
watch_store(struct session *session)
{
	struct slot *slot = &session->supervisor->slot[session->slot];
	uint32_t events = keyvalue_events(slot->store);

	slot->store_socket.owner = session;
	slot->store_socket.ready = store_ready;
	if (events != 0 &&
	    loop_watch(&slot->store_socket, keyvalue_descriptor(slot->store), events) != 0)
		session_end(
		    session->supervisor, session, "its key-value connection cannot be watched");
}

static void
store_ready(struct source *source, uint32_t events)
{
	struct session *session = source->owner;
	struct supervisor *s = session->supervisor;

	(void)events;
	loop_release(source);
	keyvalue_continue(s->slot[session->slot].store, loop_now());
	watch_store(session);
}

int
slot_store(struct supervisor *s, struct session *session)
{
	struct slot *slot = &s->slot[session->slot];
	char reason[SHAI_REASON_MAX];

	if (slot->store == NULL && s->has_store)
		slot->store = keyvalue_new(&s->store);
	if (slot->store == NULL) {
		session_end(s, session, "there is no key-value store for this pipeline");
		return -1;
	}
	/* A login of another user has failed after the store had permitted it. */
	if (session->store_user[0] != '\0' &&
	    strcmp(session->store_user, session->set->kv_user) != 0) {
		session_end(
		    s, session, "its key-value connection is another user's; connect again");
		return -1;
	}
	if (keyvalue_state(slot->store) == KEYVALUE_READY)
		return keyvalue_descriptor(slot->store);
	if (keyvalue_state(slot->store) == KEYVALUE_LOGIN)
		return -1;
	if (session->store_user[0] == '\0') {
		memcpy(session->store_user, session->set->kv_user, sizeof(session->store_user));
		/* A clean connection is watched for its end, and may be replaced now. */
		loop_release(&slot->store_socket);
		keyvalue_login(
		    slot->store, session->set->kv_user, session->set->kv_password, loop_now());
		watch_store(session);
	}
	if (keyvalue_state(slot->store) == KEYVALUE_CLOSED) {
		(void)snprintf(reason, sizeof(reason), "connect to the key-value store: %s",
		    keyvalue_reason(slot->store));
		session_end(s, session, reason);
	}
	return -1;
}

static bool
store_is_clean(const struct slot *slot)
{
	return slot->store == NULL || keyvalue_state(slot->store) == KEYVALUE_CLEAN ||
	       keyvalue_state(slot->store) == KEYVALUE_CLOSED;
}

void
slot_clean(struct supervisor *s, uint32_t number)
{
	struct slot *slot = &s->slot[number];

	for (uint32_t i = 0; i < slot->count; i++)
		drain(&slot->end[i].channel);
	if (!store_is_clean(slot)) {
		loop_release(&slot->store_socket);
		keyvalue_reset(slot->store, loop_now());
		watch_store(&s->session[number]);
	}
	(void)slot_tend(s, number, loop_now());
}

int64_t
slot_tend(struct supervisor *s, uint32_t number, int64_t now)
{
	struct slot *slot = &s->slot[number];

	if (slot->store != NULL && keyvalue_deadline(slot->store) <= now)
		store_ready(&slot->store_socket, 0);
	if (s->session[number].state == SESSION_CLEANING && store_is_clean(slot))
		session_become(&s->session[number], SESSION_NONE);
	return slot->store == NULL ? INT64_MAX : keyvalue_deadline(slot->store);
}
