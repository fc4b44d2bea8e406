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
#include "worker_messages.h"
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

/* Whether time, the monitor or the key-value store changes a session in this state. */
static bool
is_unsettled(enum session_state state)
{
	return state == SESSION_UNBOUND || state == SESSION_ASKED || state == SESSION_WAITING ||
	       state == SESSION_CLEANING;
}

void
session_become(struct session *session, enum session_state state)
{
	struct supervisor *s = session->supervisor;

	if (session->state == SESSION_BOUND && state != SESSION_BOUND)
		gate_shut(session->worker->grant);
	if (is_unsettled(state) && !is_unsettled(session->state))
		TAILQ_INSERT_TAIL(&s->unsettled, session, unsettled);
	if (!is_unsettled(state) && is_unsettled(session->state))
		TAILQ_REMOVE(&s->unsettled, session, unsettled);
	if (session->awaited) {
		session->awaited = false;
		s->awaited--;
	}
	session->state = state;
}

void
session_await(struct session *session)
{
	if (session->state != SESSION_ENDING || session->awaited)
		return;
	session->awaited = true;
	session->supervisor->awaited++;
}

/*
 * How many descriptors sessions need: the ends of slots, of each a socket and a connection to
 * the key-value store, and what one record brings or takes along.
 */
static size_t
files_needed(const struct supervisor *s)
{
	const size_t slots = s->settings.slots;
	/* There are no numbers for the ends of more. */
	const size_t ended = slots < SHAI_FD_PIPE_COUNT ? slots : SHAI_FD_PIPE_COUNT;

	return ended * SHAI_SLOT_ENDS_MAX + slots * 2 + 2 * SHAI_DESCRIPTORS_MAX;
}

size_t
sessions_spare_files(const struct supervisor *s, size_t others, size_t wanted)
{
	const size_t taken = files_needed(s) + others;
	const size_t left = s->files_max > taken ? s->files_max - taken : 1;

	return wanted < left ? wanted : left;
}

struct session *
session_find(struct supervisor *s, uint64_t id)
{
	for (uint32_t i = 0; i < s->settings.slots; i++)
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
	if (errno == EPIPE || errno == ECONNRESET)
		worker_messages_finish(s, session);
	else
		session_end(s, session, "the worker does not read its messages");
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
	session_become(session, SESSION_ENDING);
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
session_over(struct supervisor *s, struct session *session, const char *how, uint32_t flags)
{
	struct shai_control_event *event = monitor_event(SHAI_EVENT_ENDED, session);
	const char *reason = session->reason;

	event->flags = flags;
	if (reason[0] != '\0' && !session->explained)
		event->flags |= SHAI_EVENT_DECIDED;
	if (reason[0] == '\0' && !session->reset)
		reason = how;
	text_copy(event->reason, sizeof(event->reason), reason);
	memcpy(event->counters, &session->counters, sizeof(event->counters));
	event->latency_us = (uint32_t)((loop_now() - session->began) / 1000);
	loop_forget(&session->socket);
	leave(s, session);
	set_release(session->set);
	session->set = NULL;
	session->questioned = false; /* nobody waits for the answer; its channels are drained */
	session_become(session, SESSION_CLEANING);
	session->worker->session = NULL;
	session->worker = NULL;
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

void
sessions_follow_regions(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct session *session = &s->session[i];

		if (session_lives(session) && session->state != SESSION_BOUND &&
		    strcmp(session->region, regions_find(&s->regions, session->peer)) != 0)
			end_without_user(s, session,
			    "the region of the connection's address has changed; connect again");
	}
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

/* Ends a session that nobody logs in to. Returns when that is. */
static int64_t
limit_login(struct supervisor *s, struct session *session, int64_t now)
{
	int64_t over = session->began + s->settings.unbound_ms * MILLISECOND;
	char reason[SHAI_REASON_MAX];

	if (s->settings.unbound_ms == 0 || over > now)
		return s->settings.unbound_ms == 0 ? INT64_MAX : over;
	(void)snprintf(
	    reason, sizeof(reason), "nobody authenticated within %u ms", s->settings.unbound_ms);
	end_without_user(s, session, reason);
	return INT64_MAX;
}

/* Goes on with an unsettled session. Returns when to call it again at the latest. */
static int64_t
tend(struct supervisor *s, struct session *session, int64_t now)
{
	int64_t next = slot_tend(s, session->slot, now), other;

	if (session_lives(session)) {
		other = limit_crowd(s, session, now);
		next = other < next ? other : next;
	}
	if (session_lives(session)) {
		other = limit_login(s, session, now);
		next = other < next ? other : next;
	}
	if (session->state == SESSION_WAITING)
		binding_resume(s, session);
	other = binding_deadline(s, session);
	return other < next ? other : next;
}

/* Ends sessions that have lasted too long. Returns when that is for the next one, or earlier. */
static int64_t
limit_lifetimes(struct supervisor *s, int64_t now)
{
	uint32_t lifetime = s->settings.lifetime_s;
	char reason[SHAI_REASON_MAX];

	if (lifetime == 0)
		return INT64_MAX;
	if (now < s->oldest_over)
		return s->oldest_over;
	s->oldest_over = now + lifetime * SECOND; /* of sessions that begin from now on */
	(void)snprintf(
	    reason, sizeof(reason), "a session lasts at most %u s; connect again", lifetime);
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct session *session = &s->session[i];
		int64_t over = session->began + lifetime * SECOND;

		if (!session_lives(session))
			continue;
		if (over <= now)
			session_end(s, session, reason);
		else if (over < s->oldest_over)
			s->oldest_over = over;
	}
	return s->oldest_over;
}

#define WINDOWS_SEEN (60 * SECOND) /* how late the end is seen at most if the clock is set */

/*
 * Ends sessions whose instance has ended, whether or not the monitor says so. Returns when to look
 * again, at the latest. Only bound sessions have a set that matters: a login asks for a set anew.
 */
static int64_t
end_windows(struct supervisor *s, int64_t now)
{
	int64_t clock = loop_wall_clock();

	if (now < s->windows_over)
		return s->windows_over;
	s->windows_over = INT64_MAX;
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct session *session = &s->session[i];
		int64_t left;

		if (!session_lives(session) || session->state != SESSION_BOUND ||
		    session->set->ends == 0)
			continue;
		left = session->set->ends - clock;
		if (left <= 0) {
			session_end(s, session,
			    "the window of time of its instance has ended; connect again");
			continue;
		}
		left = left < WINDOWS_SEEN ? left : WINDOWS_SEEN;
		if (now + left < s->windows_over)
			s->windows_over = now + left;
	}
	return s->windows_over;
}

int64_t
sessions_tend(struct supervisor *s)
{
	int64_t now = loop_now(), next = limit_lifetimes(s, now), windows;
	struct session *session, *following;

	for (session = TAILQ_FIRST(&s->unsettled); session != NULL; session = following) {
		int64_t due;

		following = TAILQ_NEXT(session, unsettled);
		due = tend(s, session, now);
		next = due < next ? due : next;
	}
	windows = end_windows(s, now); /* at last: sessions may just have been bound */
	return windows < next ? windows : next;
}
