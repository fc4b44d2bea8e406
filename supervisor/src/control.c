/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#include "binding.h"
#include "connections.h"
#include "control_records.h"
#include "documents.h"
#include "events.h"
#include "monitor.h"
#include "notifications.h"
#include "reuse.h"
#include "sessions.h"
#include "slots.h"
#include "transfers.h"
#include "workers.h"

#define AT_ONCE 32 /* records in one turn */

/* What a record changes. Returns 0, or -1 for a record that is wrong now. */
typedef int handler(
    struct supervisor *s, const struct control *record, struct descriptors *received);

static int
settings(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	if (s->configured)
		return -1;
	s->settings = *record->settings;
	s->mode = (enum shai_mode)s->settings.mode;
	s->configured = true;
	/* Whoever connects must not take the descriptors that sessions need. */
	s->settings.waiting = (uint32_t)sessions_spare_files(s, 0, s->settings.waiting);
	slots_begin(s);
	events_begin(s->settings.slots);
	if (connections_listen(s, received->number[0]) != 0)
		return -1;
	(void)descriptors_take(received, 0);
	return documents_begin(s, descriptors_take(received, 1), received->number[2]);
}

static int
slot(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	return s->configured ? slot_define(s, record->slot, received) : -1;
}

static int
begin(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)record, (void)received;
	s->running = true;
	return s->configured ? 0 : -1;
}

static int
key(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	return keys_apply(&s->keys, record->key);
}

static int
regions(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	if (regions_apply(&s->regions, record->regions, record->region) != 0)
		return -1;
	if (record->regions->last != 0)
		sessions_follow_regions(s);
	return 0;
}

static int
set(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	if (sets_apply(&s->sets, record->set, record->classes) != 0)
		return -1;
	if ((record->set->flags & SHAI_SET_LIVE) != 0)
		binding_renew(s, record->set);
	return 0;
}

static int
forget(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	sets_forget(&s->sets, record->forget);
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct session *session = &s->session[i];

		if ((record->forget->flags & SHAI_FORGET_END) != 0 && session->set != NULL &&
		    session->state == SESSION_BOUND &&
		    set_named(session->set, record->forget->principal, record->forget->region))
			session_end_quietly(s, session, record->forget->reason);
	}
	return 0;
}

static int
mode(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	s->mode = (enum shai_mode)record->mode->mode;
	reuse_follow_mode(s);
	return 0;
}

static int
fence(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	s->fencing = true; /* of two, the later one answers the earlier one, too */
	s->fenced = record->fence->number;
	for (uint32_t i = 0; i < s->settings.slots; i++)
		session_await(&s->session[i]);
	return 0;
}

static int
terminate(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)record, (void)received;
	s->terminating = true;
	if (!s->zygote_ended)
		(void)kill(s->zygote, SIGTERM);
	notifications_release_fork(s);
	return 0;
}

static int
end(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	struct session *session = session_find(s, record->end->session);

	(void)received;
	if (session != NULL)
		session_end_quietly(s, session, record->end->reason);
	return 0;
}

static int
bind_answer(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	binding_answered(s, record->bind);
	return 0;
}

static int
relay(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	struct session *session = session_find(s, record->relay->session);

	if (session == NULL)
		return 0;
	if (session->questioned) {
		session->questioned = false;
		loop_change(&session->socket, EPOLLIN);
		transfers_resume(session);
	}
	if (transfers_answered(s, session, record->relayed))
		return 0;
	documents_answer(s, session, record->relayed, received);
	return 0;
}

static int
credits(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	return __builtin_add_overflow(s->credits, record->credits->count, &s->credits) ? -1 : 0;
}

static int
store(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	if (s->has_store)
		return -1; /* connections refer to it */
	s->store = *record->store;
	s->has_store = true;
	return 0;
}

static int
sealed(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	reuse_sealed(s, record->sealed);
	return 0;
}

static int
compared(struct supervisor *s, const struct control *record, struct descriptors *received)
{
	(void)received;
	reuse_compared(s, record->compared);
	return 0;
}

static handler *const handlers[] = {
    [SHAI_CONTROL_SETTINGS] = settings,
    [SHAI_CONTROL_SLOT] = slot,
    [SHAI_CONTROL_BEGIN] = begin,
    [SHAI_CONTROL_KEY] = key,
    [SHAI_CONTROL_REGIONS] = regions,
    [SHAI_CONTROL_SET] = set,
    [SHAI_CONTROL_FORGET] = forget,
    [SHAI_CONTROL_MODE] = mode,
    [SHAI_CONTROL_FENCE] = fence,
    [SHAI_CONTROL_TERMINATE] = terminate,
    [SHAI_CONTROL_END] = end,
    [SHAI_CONTROL_BIND] = bind_answer,
    [SHAI_CONTROL_RELAY] = relay,
    [SHAI_CONTROL_CREDITS] = credits,
    [SHAI_CONTROL_STORE] = store,
    [SHAI_CONTROL_SEALED] = sealed,
    [SHAI_CONTROL_COMPARED] = compared,
};

static void
give_up(struct supervisor *s)
{
	s->lost = true;
	loop_release(&s->control); /* it may still tell how the program ended */
	workers_kill_all(s);
}

static void
control_ready(struct source *source, uint32_t events)
{
	static _Alignas(8) uint8_t record[SHAI_CONTROL_MAX];
	struct supervisor *s = source->owner;

	if ((events & EPOLLOUT) != 0 && s->full) {
		s->full = false;
		loop_change(source, EPOLLIN);
	}
	for (int i = 0; i < AT_ONCE; i++) {
		struct descriptors received;
		struct control decoded;
		ssize_t length =
		    packet_receive(source->descriptor, record, sizeof(record), &received);
		struct bytes message = {record, (size_t)length, received.count};
		bool right;

		if (length < 0 && errno == EAGAIN)
			return;
		right = length > 0 && control_decode(message, &decoded) == NULL &&
			handlers[decoded.type](s, &decoded, &received) == 0;
		descriptors_close(&received);
		if (!right) {
			give_up(s);
			return;
		}
	}
}

int
control_begin(struct supervisor *s, int socket)
{
	s->control.owner = s;
	s->control.ready = control_ready;
	return loop_watch(&s->control, socket, EPOLLIN);
}
