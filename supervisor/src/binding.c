/* SPDX-License-Identifier: BSD-2-Clause */
#include "binding.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "documents.h"
#include "events.h"
#include "login.h"
#include "monitor.h"
#include "sessions.h"
#include "slots.h"
#include "text.h"
#include "transfers.h"

#define PATIENCE SECOND /* of a login with the audit log */

/* The set of a session's instance as it is now, held; NULL if there is none. */
static struct set *
set_of(struct supervisor *s, const struct session *session)
{
	uint32_t parameters = s->settings.parameters;

	return sets_hold(&s->sets,
	    (parameters & SHAI_PARAMETER_USER) != 0 ? session->principal : "",
	    (parameters & SHAI_PARAMETER_REGION) != 0 ? session->region : "", loop_wall_clock());
}

static uint32_t
latency_of(const struct session *session)
{
	return (uint32_t)((loop_now() - session->asked) / 1000);
}

/* Refuses a login. The session may try again. */
static void
refuse(struct supervisor *s, struct session *session, enum shai_event_kind kind, int status,
    const char *reason)
{
	struct shai_control_event *event = monitor_event(kind, session);
	struct shai_bound answer = {
	    .header = session_header(SHAI_BOUND, sizeof(answer), session->sequence),
	    .status = status};

	text_copy(event->reason, sizeof(event->reason), reason);
	event->latency_us = latency_of(session);
	text_copy(answer.reason, sizeof(answer.reason), reason);
	if (session->user != NULL && !session->conversation.bound) {
		keys_leave(&s->keys, session->user);
		session->user = NULL;
	}
	(void)session_send(s, session, &answer, sizeof(answer), NULL);
}

/* Asks the monitor whether a session may be bound. */
static void
ask(struct supervisor *s, struct session *session)
{
	struct shai_control_ask_bind question = {
	    .header = monitor_header(SHAI_CONTROL_ASK_BIND, sizeof(question)),
	    .session = session->id,
	    .sequence = session->sequence,
	    .slot = session->slot};

	memcpy(question.principal, session->principal, sizeof(question.principal));
	memcpy(question.peer, session->peer, sizeof(question.peer));
	memcpy(question.region, session->region, sizeof(question.region));
	session_become(session, SESSION_ASKED);
	if (monitor_send(s, &question, sizeof(question), -1) != 0)
		session_end(s, session, "the monitor did not read the question about a login");
}

/* Whether a session can be bound without a question: the monitor has answered it in advance. */
static bool
is_decided(const struct session *session, const struct set *set)
{
	return !shai_mode_is_dynamic(session->mode) && set != NULL &&
	       (set->flags & SHAI_SET_LEAVES) != 0;
}

/* Makes a set, which the caller holds, the one that the session will be bound with. */
static void
adopt(struct session *session, struct set *set)
{
	set_release(session->set);
	session->set = set;
}

static void
permit(struct supervisor *s, struct session *session, struct set *set)
{
	adopt(session, set);
	session_become(session, SESSION_WAITING);
	binding_resume(s, session);
}

/* Verifies who logs in, and counts the session as theirs. Returns whether it was refused. */
static bool
verify(struct supervisor *s, struct session *session, const struct shai_authenticate *request)
{
	const struct login login = {.service = s->settings.service,
	    .pipeline = s->settings.pipeline,
	    .nonce = session->nonce};
	char reason[SHAI_REASON_MAX];
	struct principal *user = login_verify(&login, &s->keys, request, reason);

	if (user == NULL) {
		refuse(s, session, SHAI_EVENT_REFUSED, EACCES, reason);
		return true;
	}
	if (!keys_enter(user, s->settings.per_principal)) {
		(void)snprintf(reason, sizeof(reason),
		    "%s already has %u sessions, the limit; end one of them", request->principal,
		    s->settings.per_principal);
		refuse(s, session, SHAI_EVENT_LIMIT, EACCES, reason);
		return true;
	}
	session->user = user;
	session->key_version = user->version;
	return false;
}

void
binding_login(struct supervisor *s, struct session *session, const struct worker_record *record)
{
	struct set *set;

	session->sequence = record->sequence;
	session->asked = loop_now();
	if (session->state == SESSION_BOUND) {
		refuse(s, session, SHAI_EVENT_REFUSED, EACCES, LOGIN_BOUND);
		return;
	}
	if (session->state != SESSION_UNBOUND) {
		session_end(s, session, "the worker sent a login before the last one was answered");
		return;
	}
	memcpy(session->principal, record->authenticate->principal, sizeof(session->principal));
	if (verify(s, session, record->authenticate))
		return;
	set = set_of(s, session);
	if (is_decided(session, set)) {
		permit(s, session, set);
		return;
	}
	set_release(set);
	ask(s, session);
}

void
binding_answered(struct supervisor *s, const struct shai_control_bind *answer)
{
	struct session *session = session_find(s, answer->session);
	struct set *set;

	if (session == NULL || session->state != SESSION_ASKED ||
	    session->sequence != answer->sequence)
		return; /* the session has ended since */
	session_become(session, SESSION_UNBOUND);
	set = set_of(s, session);
	if (answer->status != 0)
		refuse(s, session, SHAI_EVENT_REFUSED, answer->status, answer->reason);
	else if (set == NULL)
		refuse(s, session, SHAI_EVENT_REFUSED, EACCES,
		    "what the session may do has just changed; log in again");
	else {
		permit(s, session, set);
		return;
	}
	set_release(set);
}

/* Tells the worker, with its descriptors. Returns 0, or -1: the session has ended. */
static int
tell_worker(struct supervisor *s, struct session *session, int store)
{
	static struct {
		struct shai_bound head;
		uint32_t classes[SHAI_CLASSES_MAX];
	} record;
	struct descriptors with = {.count = 0};
	struct grant grant;
	int result;
	const struct set *set = session->set;
	size_t count = shai_mode_is_dynamic(session->mode) ? 0 : set->class_count;
	size_t size = sizeof(record.head) + count * sizeof(record.classes[0]);

	memset(&record.head, 0, sizeof(record.head));
	record.head.header = session_header(SHAI_BOUND, size, session->sequence);
	record.head.class_count = (uint32_t)count;
	memcpy(record.head.instance, set->instance, sizeof(record.head.instance));
	memcpy(record.classes, set->classes, count * sizeof(record.classes[0]));
	if (store >= 0) {
		record.head.flags = SHAI_BOUND_KEYVALUE;
		with.number[with.count++] = store;
	}
	grant = documents_grant(s, set->classes, count, &with);
	record.head.directory_count = (uint32_t)grant.count;
	result = session_send(s, session, &record, size, &with);
	documents_return(s, &grant);
	return result;
}

/* Lets a worker with a grant read what its session may get. Returns whether it has one. */
static bool
open_gate(struct supervisor *s, const struct session *session)
{
	const struct set *set = session->set;
	struct shai_grant *grant = session->worker->grant;

	if (grant == NULL || shai_mode_is_dynamic(session->mode))
		return false;
	gate_open(grant, session->mode == SHAI_MODE_AUDIT ? SHAI_GRANT_UNCHECKED : 0,
	    s->class_count, set->classes, set->class_count);
	return true;
}

void
binding_renew(struct supervisor *s, const struct shai_control_set *record)
{
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct session *session = &s->session[i];
		struct set *set;

		if (session->state != SESSION_BOUND || session->mode != SHAI_MODE_SHAI ||
		    !set_named(session->set, record->principal, record->region) ||
		    strcmp(session->instance, record->instance) != 0) /* of a former window */
			continue;
		set = sets_hold(&s->sets, record->principal, record->region, loop_wall_clock());
		if (set == NULL) /* it has expired */
			return;
		adopt(session, set);
		session->grown = true;
		(void)open_gate(s, session);
	}
}

static void
bind_session(struct supervisor *s, struct session *session, int store)
{
	struct shai_control_event *event;

	session_become(session, SESSION_BOUND);
	session->conversation.bound = true;
	transfers_begin(session);
	session->conversation.gated = open_gate(s, session);
	memcpy(session->instance, session->set->instance, sizeof(session->instance));
	if (session->set->ends != 0)
		s->windows_over = 0; /* look when it ends */
	s->credits--;
	/* Recorded before the worker knows: what it does afterwards has a user. */
	event = monitor_event(SHAI_EVENT_BOUND, session);
	event->latency_us = latency_of(session);
	text_copy(event->reason, sizeof(event->reason),
	    (session->set->flags & SHAI_SET_ANALYZED) != 0 ? "analyzed" : "mispredicted");
	(void)tell_worker(s, session, store);
}

/* Whether a binding could be recorded. */
static bool
is_recordable(const struct supervisor *s)
{
	return s->credits > 0 && events_room();
}

int64_t
binding_deadline(const struct supervisor *s, const struct session *session)
{
	return session->state != SESSION_WAITING || is_recordable(s) ? INT64_MAX
								     : session->asked + PATIENCE;
}

void
binding_resume(struct supervisor *s, struct session *session)
{
	struct set *set = set_of(s, session);
	int store = -1;

	if (set != session->set && !is_decided(session, set)) { /* it has changed in the meantime */
		set_release(set);
		ask(s, session);
		return;
	}
	adopt(session, set);
	if (session->key_version != session->user->version) {
		session_become(session, SESSION_UNBOUND);
		refuse(s, session, SHAI_EVENT_REFUSED, EACCES,
		    "the user's key has just changed; log in again");
		return;
	}
	if (!is_recordable(s)) { /* it does not happen then */
		if (loop_now() >= binding_deadline(s, session)) {
			session_become(session, SESSION_UNBOUND);
			refuse(s, session, SHAI_EVENT_REFUSED, EACCES,
			    "the session cannot be recorded: the audit log takes no records now");
		}
		return;
	}
	if (session->set->kv_user[0] != '\0') {
		store = slot_store(s, session);
		if (store < 0)
			return; /* the connection is being prepared, or the session has ended */
	}
	bind_session(s, session, store);
}
