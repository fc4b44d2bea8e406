/* SPDX-License-Identifier: BSD-2-Clause */
#include "slots.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "monitor.h"
#include "sessions.h"
#include "transfers.h"

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
		if (transfers_watch(end, &s->session[record->slot], descriptor) != 0)
			return -1;
	}
	return 0;
}

bool
slot_is_free(const struct supervisor *s, uint32_t number)
{
	return s->slot[number].present && s->session[number].state == SESSION_NONE;
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
		transfers_drain(&slot->end[i]);
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
