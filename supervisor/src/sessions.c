/* SPDX-License-Identifier: BSD-2-Clause */
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "binding.h"
#include "crowd.h"
#include "events.h"
#include "monitor.h"
#include "slots.h"
#include "text.h"
#include "workers.h"

struct shai_header
session_header(enum shai_type type, size_t size, uint64_t sequence)
{
	return (struct shai_header){.version = SHAI_WIRE_VERSION,
	    .type = (uint16_t)type,
	    .size = (uint32_t)size,
	    .sequence = sequence};
}

bool
session_lives(const struct session *session)
{
	return session->state >= SESSION_UNBOUND && session->state <= SESSION_BOUND;
}

struct session *
session_find(struct supervisor *s, uint64_t id)
{
	for (size_t i = 0; i < SHAI_SLOTS_MAX; i++)
		if (session_lives(&s->session[i]) && s->session[i].id == id)
			return &s->session[i];
	return NULL;
}

int
session_send(struct supervisor *s, struct session *session, const void *record, size_t size,
    const struct descriptors *with)
{
	if (packet_send(session->socket.descriptor, record, size, with) == 0)
		return 0;
	/* EPIPE: the worker is dying, and its status says how. */
	session_end(s, session, errno == EPIPE ? "" : "the worker does not read its messages");
	return -1;
}

/* The session no longer counts as one of its user's, who may log in elsewhere. */
static void
leave(struct supervisor *s, struct session *session)
{
	if (session->user != NULL)
		keys_leave(&s->keys, session->user);
	session->user = NULL;
}

void
session_end(struct supervisor *s, struct session *session, const char *reason)
{
	if (!session_lives(session))
		return;
	text_copy(session->reason, sizeof(session->reason), reason);
	session->state = SESSION_ENDING;
	leave(s, session);
	(void)kill(session->worker->pid, SIGKILL);
	loop_forget(&session->socket); /* after it, so that the worker does not see the end */
}

void
session_end_quietly(struct supervisor *s, struct session *session, const char *reason)
{
	session->explained = session_lives(session);
	session_end(s, session, reason);
}

void
session_worker_gone(struct supervisor *s, struct session *session, const char *how)
{
	struct shai_control_event *event = monitor_event(SHAI_EVENT_ENDED, session);
	const char *reason = session->reason;

	if (reason[0] != '\0' && !session->explained)
		event->flags = SHAI_EVENT_DECIDED;
	if (reason[0] == '\0' && !session->reset)
		reason = how;
	text_copy(event->reason, sizeof(event->reason), reason);
	memcpy(event->counters, &session->counters, sizeof(event->counters));
	event->latency_us = (uint32_t)((loop_now() - session->began) / 1000);
	loop_forget(&session->socket);
	leave(s, session);
	set_release(session->set);
	session->set = NULL;
	session->worker->session = NULL;
	session->worker = NULL;
	session->state = SESSION_CLEANING;
	slot_clean(s, session->slot);
}

/* Ends a session that nobody has logged in to in time. */
static void
end_without_user(struct supervisor *s, struct session *session, const char *reason)
{
	struct shai_control_event *event = monitor_event(SHAI_EVENT_REFUSED, session);

	text_copy(event->reason, sizeof(event->reason), reason);
	session_end_quietly(s, session, reason);
}

/* Ends a session of a crowd, once it had time to log in. Returns when that is. */
static int64_t
limit_crowd(struct supervisor *s, struct session *session, int64_t now)
{
	int64_t hurry = session->began + CROWD_HURRY;
	char reason[SHAI_REASON_MAX];

	if (session->hurried || session->user != NULL || s->settings.per_peer == 0)
		return INT64_MAX;
	if (hurry > now)
		return hurry;
	session->hurried = true;
	if (crowd_exceeds(s, session)) {
		crowd_reason(s, reason);
		end_without_user(s, session, reason);
	}
	return INT64_MAX;
}

/* Ends a session that is over its time. Returns when that is. */
static int64_t
limit_time(struct supervisor *s, struct session *session, int64_t now)
{
	const struct shai_control_settings *limits = &s->settings;
	int64_t unbound = INT64_MAX, lifetime = INT64_MAX;
	char reason[SHAI_REASON_MAX];

	if (session->state != SESSION_BOUND && limits->unbound_ms != 0)
		unbound = session->began + limits->unbound_ms * MILLISECOND;
	if (limits->lifetime_s != 0)
		lifetime = session->began + limits->lifetime_s * SECOND;
	if (unbound <= now) {
		(void)snprintf(reason, sizeof(reason), "nobody authenticated within %u ms",
		    limits->unbound_ms);
		end_without_user(s, session, reason);
	} else if (lifetime <= now) {
		(void)snprintf(reason, sizeof(reason),
		    "a session lasts at most %u s; connect again", limits->lifetime_s);
		session_end(s, session, reason);
	}
	return unbound < lifetime ? unbound : lifetime;
}

/* Ends a session that a limit ends. Returns when to ask again. */
static int64_t
limit(struct supervisor *s, struct session *session, int64_t now)
{
	int64_t crowd = INT64_MAX, time = INT64_MAX;

	if (session_lives(session))
		crowd = limit_crowd(s, session, now);
	if (session_lives(session))
		time = limit_time(s, session, now);
	if (!session_lives(session))
		return INT64_MAX;
	return crowd < time ? crowd : time;
}

int64_t
sessions_tend(struct supervisor *s)
{
	int64_t next = INT64_MAX, now = loop_now();

	for (size_t i = 0; i < SHAI_SLOTS_MAX; i++) {
		struct session *session = &s->session[i];
		int64_t over = limit(s, session, now);
		int64_t cleaned = slot_tend(s, session->slot, now), waits;

		if (session->state == SESSION_WAITING)
			binding_resume(s, session);
		waits = binding_deadline(s, session);
		next = waits < next ? waits : next;
		next = over < next ? over : next;
		next = cleaned < next ? cleaned : next;
	}
	return next;
}
