/* SPDX-License-Identifier: BSD-2-Clause */
#include "connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crowd.h"
#include "events.h"
#include "monitor.h"
#include "notifications.h"
#include "sessions.h"
#include "slots.h"
#include "text.h"
#include "transfers.h"
#include "worker_messages.h"
#include "workers.h"

#define AT_ONCE 16                       /* connections in one turn: sessions have theirs, too */
#define ACCEPT_PAUSE (100 * MILLISECOND) /* after an error that may last */

/* Whether connections may come. */
static bool
is_open(const struct supervisor *s)
{
	return s->running && !s->terminating && !s->lost;
}

/* Whether a connection waits, and could be served now. */
static bool
is_ready(struct supervisor *s)
{
	return s->queue.count > 0 && is_open(s) && events_room() && workers_ready(s) != NULL;
}

/* IPv4 in its mapped form; other families are all zero. */
static void
address_of(const struct sockaddr_storage *peer, uint8_t address[SHAI_ADDRESS_SIZE])
{
	memset(address, 0, SHAI_ADDRESS_SIZE);
	if (peer->ss_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)peer)->sin6_addr, SHAI_ADDRESS_SIZE);
	} else if (peer->ss_family == AF_INET) {
		memset(address + 10, 0xff, 2);
		memcpy(address + 12, &((const struct sockaddr_in *)peer)->sin_addr, 4);
	}
}

static void
write_address(const uint8_t address[SHAI_ADDRESS_SIZE], char out[SHAI_NAME_MAX])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		(void)inet_ntop(AF_INET, address + sizeof(mapped), out, SHAI_NAME_MAX);
	else
		(void)inet_ntop(AF_INET6, address, out, SHAI_NAME_MAX);
}

static void
report_limit(
    const uint8_t address[SHAI_ADDRESS_SIZE], char reason[SHAI_REASON_MAX], uint32_t withheld)
{
	struct shai_control_event *event = events_add(SHAI_EVENT_LIMIT);
	size_t length;

	if (withheld > 0) {
		length = strlen(reason);
		(void)snprintf(reason + length, SHAI_REASON_MAX - length,
		    "; %u events were left out before this", withheld);
	}
	text_copy(event->reason, sizeof(event->reason), reason);
	memcpy(event->peer, address, sizeof(event->peer));
}

/* Reports why a connection is closed, or counts it where its address has been reported often. */
static void
report_closed(
    struct supervisor *s, const uint8_t address[SHAI_ADDRESS_SIZE], char reason[SHAI_REASON_MAX])
{
	uint32_t withheld;

	if (events_room() && limits_report(&s->limits, address, loop_now(), &withheld))
		report_limit(address, reason, withheld);
}

/* Fills in a session for a connection, whose slot is free. */
static void
prepare(struct supervisor *s, struct session *session, const uint8_t address[SHAI_ADDRESS_SIZE])
{
	*session = (struct session){.state = SESSION_NONE,
	    .supervisor = s,
	    .slot = session->slot,
	    .socket.descriptor = -1,
	    .id = ++s->next_session,
	    .mode = s->mode,
	    .began = loop_now()};
	session_become(session, SESSION_UNBOUND);
	memcpy(session->peer, address, sizeof(session->peer));
	text_copy(session->region, sizeof(session->region), regions_find(&s->regions, address));
}

static int
tell_worker(const struct supervisor *s, const struct session *session, int socket)
{
	struct shai_connected record = {.header = session_header(SHAI_CONNECTED, sizeof(record), 0),
	    .mode = session->mode,
	    .slot = session->slot};

	memcpy(record.nonce, session->nonce, sizeof(record.nonce));
	memcpy(record.region, session->region, sizeof(record.region));
	memcpy(record.service, s->settings.service, sizeof(record.service));
	memcpy(record.pipeline, s->settings.pipeline, sizeof(record.pipeline));
	write_address(session->peer, record.peer);
	return packet_send(socket, &record, sizeof(record), NULL);
}

/* Places what a worker's sessions have in common. Returns 0 or -1. */
static int
place_lasting(struct supervisor *s, const struct worker *worker)
{
	struct slot *slot = &s->slot[worker - s->worker];
	uint64_t call = worker->waiting;

	/* The task's log is for those who may read what its program says: nothing of a user. */
	if (notification_place(s, call, s->silence, STDOUT_FILENO, false) != 0 ||
	    notification_place(s, call, s->silence, STDERR_FILENO, false) != 0)
		return -1;
	for (uint32_t i = 0; i < slot->count; i++) {
		const struct end *end = &slot->end[i];
		int file = end->gated ? end->channel.descriptor : end->descriptor;

		if (file >= 0 && notification_place(s, call, file, end->number, false) != 0)
			return -1;
	}
	return 0;
}

/*
 * Places everything in the worker, the connection last: its accept4 returns with it, so
 * the worker never sees an incomplete session. Returns 0 or -1.
 */
static int
place(struct supervisor *s, struct worker *worker, int theirs, int connection)
{
	if (worker->grant != NULL)
		transfers_leave(s, &s->slot[worker - s->worker]);
	if (worker->sessions == 0 && place_lasting(s, worker) != 0)
		return -1;
	worker->connection = worker_connection(worker_session(s, worker)->mode);
	if (notification_place(s, worker->waiting, theirs, SHAI_FD_MONITOR, false) != 0)
		return -1;
	return notification_place(s, worker->waiting, connection, worker->connection, true);
}

/*
 * Makes the socket of a prepared session, with the worker's first message in it. Returns the
 * worker's end, or -1; then nothing of it is left.
 */
static int
open_socket(struct supervisor *s, struct session *session)
{
	int ends[2];

	if (transfers_draw_nonce(&s->slot[session->slot], session->nonce) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	if (worker_messages_watch(s, session, ends[0]) != 0) {
		(void)close(ends[0]);
	} else {
		if (tell_worker(s, session, ends[0]) == 0)
			return ends[1];
		loop_forget(&session->socket);
	}
	(void)close(ends[1]);
	return -1;
}

/*
 * Begins a session, whose socket is there, with a worker. Returns 0, or -1; then the session
 * has no socket any more, and the worker gets no other session.
 */
static int
begin(struct supervisor *s, struct session *session, struct worker *worker, int theirs,
    int connection)
{
	struct shai_control_event *accepted;

	session->worker = worker;
	if (place(s, worker, theirs, connection) != 0) {
		loop_forget(&session->socket);
		return -1;
	}
	worker_become(s, worker, WORKER_SERVING);
	worker->session = session;
	worker->soiled = true;
	worker->sessions++;
	accepted = monitor_event(SHAI_EVENT_ACCEPTED, session);
	text_copy(accepted->reason, sizeof(accepted->reason), session->region);
	return 0;
}

/* Gives a connection to the next worker that lives. Without a socket for both, workers stay. */
static void
serve(struct supervisor *s, int connection, const uint8_t address[SHAI_ADDRESS_SIZE])
{
	char reason[SHAI_REASON_MAX];
	struct worker *worker;

	while ((worker = workers_ready(s)) != NULL) {
		struct session *session = worker_session(s, worker);
		int theirs, result;

		prepare(s, session, address);
		/* What a worker has cannot be taken back, so all else that may fail comes first. */
		theirs = open_socket(s, session);
		if (theirs < 0) {
			(void)snprintf(
			    reason, sizeof(reason), "the session's socket cannot be made: %m");
			report_closed(s, address, reason);
			session_become(session, SESSION_NONE);
			return;
		}
		result = begin(s, session, worker, theirs, connection);
		(void)close(theirs);
		if (result == 0)
			return;
		session_become(session, SESSION_NONE);
		/* It may hold a part of a session; if it is dead already, nothing happens. */
		worker_become(s, worker, WORKER_REFUSED);
		(void)kill(worker->pid, SIGKILL);
	}
}

/* Watches the listening socket for connections, or not. */
static void
watch(struct supervisor *s, bool wanted)
{
	if (s->accepts_connections == wanted)
		return;
	s->accepts_connections = wanted;
	loop_change(&s->connections, wanted ? EPOLLIN : 0);
}

/* Whether the client has closed its connection, and has not said anything before. */
static bool
has_gone(int connection)
{
	char byte;
	ssize_t length = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

/* Serves the connections that wait, as far as there are workers. */
static void
serve_queue(struct supervisor *s)
{
	char reason[SHAI_REASON_MAX];
	struct queued next;

	while (is_ready(s) && queue_take(&s->queue, crowd_size, s, &next)) {
		if (crowd_refuses(s, next.address, loop_now())) {
			crowd_reason(s, reason);
			report_closed(s, next.address, reason);
		} else if (!has_gone(next.connection)) {
			serve(s, next.connection, next.address);
		}
		(void)close(next.connection);
	}
}

/* Lets a connection wait for a worker. If too many do, one of them leaves. */
static void
wait_for_worker(struct supervisor *s, int connection, const uint8_t address[SHAI_ADDRESS_SIZE])
{
	char reason[SHAI_REASON_MAX];
	struct queued out;

	if (!queue_add(&s->queue, connection, address, s->settings.waiting, &out))
		return;
	(void)close(out.connection);
	(void)snprintf(reason, sizeof(reason),
	    "more than %u connections wait for a worker, most of them of this address",
	    s->settings.waiting);
	report_closed(s, out.address, reason);
}

static void
connection_ready(struct source *source, uint32_t events)
{
	struct supervisor *s = source->owner;
	struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
	uint8_t address[SHAI_ADDRESS_SIZE];

	(void)events;
	for (int i = 0; i < AT_ONCE && is_open(s); i++) {
		socklen_t size = sizeof(peer);
		int connection =
		    accept4(source->descriptor, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC);

		if (connection < 0 && (errno == EAGAIN || errno == ECONNABORTED))
			return;
		if (connection < 0) { /* too many open files, perhaps */
			s->accept_after = loop_now() + ACCEPT_PAUSE;
			watch(s, false);
			return;
		}
		address_of(&peer, address);
		wait_for_worker(s, connection, address);
	}
}

int
connections_listen(struct supervisor *s, int listening)
{
	int flags = fcntl(listening, F_GETFL);

	/* Another process may hold the socket too, and accept a connection first. */
	if (flags < 0 || fcntl(listening, F_SETFL, flags | O_NONBLOCK) != 0)
		return -1;
	s->connections.owner = s;
	s->connections.ready = connection_ready;
	return loop_watch(&s->connections, listening, 0);
}

int64_t
connections_tend(struct supervisor *s)
{
	int64_t now = loop_now(), next;
	const struct peer *peer;
	uint32_t withheld;

	watch(s, is_open(s) && now >= s->accept_after);
	serve_queue(s);
	while (events_room() && (peer = limits_due(&s->limits, now, &withheld)) != NULL) {
		char reason[SHAI_REASON_MAX] = "connections of this address were closed";

		report_limit(peer->address, reason, withheld);
	}
	next = events_room() ? limits_deadline(&s->limits) : INT64_MAX;
	return s->accept_after > now && s->accept_after < next ? s->accept_after : next;
}
