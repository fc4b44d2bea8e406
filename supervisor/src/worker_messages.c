/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker_messages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "binding.h"
#include "documents.h"
#include "monitor.h"
#include "reuse.h"
#include "sessions.h"
#include "text.h"
#include "transfers.h"

#define LEFT_MAX 1024 /* more than a socket holds: who goes on writing has not ended */

static void
violate(struct supervisor *s, struct session *session, const char *problem)
{
	struct shai_control_event *event = monitor_event(SHAI_EVENT_VIOLATION, session);
	char reason[SHAI_REASON_MAX];

	(void)snprintf(reason, sizeof(reason), "the worker sent %s", problem);
	text_copy(event->reason, sizeof(event->reason), reason);
	session_end_quietly(s, session, reason);
}

static void
reset(struct supervisor *s, struct session *session, const struct shai_reset *record)
{
	uint64_t seconds = (uint64_t)((loop_now() - session->began) / SECOND);

	session->counters = worker_counters(record, seconds);
	session->reset = true;
	if (session->worker->sealed)
		reuse_leaves(s, session->worker); /* it is over when its worker returns */
	else
		session_end(s, session, "");
}

static void
obey(struct supervisor *s, struct session *session, struct bytes message)
{
	struct worker_record record;
	const char *problem = worker_decode(message, &session->conversation, &record);

	if (problem == NULL && session->reset)
		problem = "a message after the one that ends the session";
	if (problem != NULL) {
		violate(s, session, problem);
		return;
	}
	switch (record.type) {
	case SHAI_AUTHENTICATE:
		binding_login(s, session, &record);
		break;
	case SHAI_OPEN:
		documents_open(s, session, &record);
		break;
	case SHAI_WRITE:
		documents_ask(s, session, &record.write->header);
		break;
	case SHAI_CHOICES:
		documents_ask(s, session, &record.choices->header);
		break;
	case SHAI_CHOOSE:
		documents_ask(s, session, &record.choose->header);
		break;
	case SHAI_TRANSFER:
		transfers_judge(s, session,
		    (struct bytes){
			record.forwarded + 1, message.length - sizeof(*record.forwarded), 0});
		break;
	default: /* worker_decode lets nothing else through */
		reset(s, session, record.reset);
	}
}

void
worker_messages_read(struct supervisor *s, struct session *session)
{
	static _Alignas(8) uint8_t message[WORKER_MESSAGE_MAX + 64];
	ssize_t length;

	for (int i = 0; i < LEFT_MAX && session_lives(session); i++) {
		struct worker_record record;

		length = packet_receive(session->socket.descriptor, message, sizeof(message), NULL);
		if (length <= 0 || worker_decode((struct bytes){message, (size_t)length, 0},
				       &session->conversation, &record) != NULL)
			break;
		if (record.type == SHAI_RESET)
			reset(s, session, record.reset);
	}
}

void
worker_messages_finish(struct supervisor *s, struct session *session)
{
	worker_messages_read(s, session);
	session_end(s, session, ""); /* its status says how it died */
}

/* One message in one turn: others have theirs, too, and the worker mostly waits for an answer. */
static void
socket_ready(struct source *source, uint32_t events)
{
	struct session *session = source->owner;
	struct supervisor *s = session->supervisor;
	/* Larger than any message of a worker. */
	static _Alignas(8) uint8_t message[WORKER_MESSAGE_MAX + 64];
	ssize_t length;

	if (session->questioned && (events & (EPOLLHUP | EPOLLERR)) != 0)
		worker_messages_finish(s, session);
	if (!session_lives(session) || session->questioned)
		return;
	length = packet_receive(source->descriptor, message, sizeof(message), NULL);
	if (length < 0 && errno == EAGAIN)
		return;
	if (length < 0)
		violate(s, session, "a message that is too long, or has descriptors");
	else if (length == 0)
		worker_messages_finish(s, session);
	else
		obey(s, session, (struct bytes){message, (size_t)length, 0});
}

int
worker_messages_watch(struct supervisor *s, struct session *session, int socket)
{
	session->supervisor = s;
	session->socket.owner = session;
	session->socket.ready = socket_ready;
	return loop_watch(&session->socket, socket, EPOLLIN);
}
