/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker's session with one user: accept, authenticate, reset.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend.h"
#include "counters.h"
#include "directories.h"
#include "documents.h"
#include "exchange.h"
#include "failure.h"
#include "shai.h"
#include "shai_text.h"

#define DEFAULT_TIMEOUT_MILLISECONDS 10000

static uint32_t baseline_slot;
static bool served; /* this process has had a session under a monitor */

pid_t
shai_fork_worker(uint32_t slot)
{
	pid_t child;

	if (slot >= SHAI_FD_CHANNEL_COUNT)
		return shai_fail(
		    EINVAL, "worker: slot %u is not below %d", slot, SHAI_FD_CHANNEL_COUNT);
	child = shai_mode() == SHAI_MODE_BASELINE ? fork() : shai_backend_fork_worker();
	if (child < 0)
		return shai_fail(errno, "worker: cannot fork: %s", strerror(errno));
	if (child == 0)
		baseline_slot = slot;
	return child;
}

static void
begin(struct shai_session *session)
{
	memset(session, 0, offsetof(struct shai_session, classes));
	session->connection = -1;
	session->keyvalue = -1;
	session->query_pipe = SHAI_FD_PIPE;
	session->channel = SHAI_FD_CHANNEL;
	session->timeout_milliseconds = DEFAULT_TIMEOUT_MILLISECONDS;
}

/*
 * Calls accept4(2) and retries after EINTR. Returns the connection, or -1 after
 * shai_fail.
 */
static int
accept_connection(struct sockaddr_storage *peer)
{
	socklen_t size = sizeof(*peer);
	int connection;

	do
		connection = accept4(SHAI_FD_LISTEN, (struct sockaddr *)peer, &size, SOCK_CLOEXEC);
	while (connection < 0 && errno == EINTR);
	if (connection < 0)
		return shai_fail(errno, "accept: %s", strerror(errno));
	return connection;
}

static void
write_address(const struct sockaddr_storage *peer, char out[SHAI_NAME_MAX])
{
	const void *address = NULL;

	if (peer->ss_family == AF_INET)
		address = &((const struct sockaddr_in *)peer)->sin_addr;
	else if (peer->ss_family == AF_INET6)
		address = &((const struct sockaddr_in6 *)peer)->sin6_addr;
	if (address != NULL)
		(void)inet_ntop(peer->ss_family, address, out, SHAI_NAME_MAX);
}

/*
 * Returns the slot-th number of a kind with a right, or fallback if the table lists
 * fewer.
 */
static int
number_of_slot(enum shai_capability_kind kind, uint16_t right, uint32_t slot, int fallback)
{
	uint32_t seen = 0;

	for (size_t i = 0; i < shai_capability_count(); i++) {
		const struct shai_capability *capability = shai_capability_at(i);

		if (capability->kind == kind && (capability->rights & right) != 0 && seen++ == slot)
			return capability->number;
	}
	return fallback;
}

/* Leaves the text empty without a variable that fits: nobody can then sign in. */
static void
copy_environment(const char *name, char out[SHAI_NAME_MAX])
{
	const char *value = getenv(name);

	if (value != NULL)
		(void)shai_encode_text(out, SHAI_NAME_MAX, value);
}

static int
accept_baseline(struct shai_session *session)
{
	struct sockaddr_storage peer;

	memset(&peer, 0, sizeof(peer));
	if (shai_backend_random(session->nonce, sizeof(session->nonce)) != 0)
		return shai_fail(errno, "accept: no random bytes: %s", strerror(errno));
	session->connection = accept_connection(&peer);
	if (session->connection < 0)
		return -1;
	write_address(&peer, session->peer);
	copy_environment(SHAI_ENVIRONMENT_SERVICE, session->service);
	copy_environment(SHAI_ENVIRONMENT_PIPELINE, session->pipeline);
	session->mode = SHAI_MODE_BASELINE;
	session->slot = baseline_slot;
	session->query_pipe = number_of_slot(
	    SHAI_KIND_PIPE, SHAI_RIGHT_WRITE, baseline_slot, SHAI_FD_PIPE + (int)baseline_slot);
	session->channel = number_of_slot(SHAI_KIND_CHANNEL, SHAI_RIGHT_READ, baseline_slot,
	    SHAI_FD_CHANNEL + (int)baseline_slot);
	return 0;
}

static const char *
check_connected(const struct shai_connected *connected, int connection)
{
	int expected = SHAI_FD_CONNECTION;

	if (connected->mode == SHAI_MODE_BASELINE)
		return "mode baseline in a task that runs under a monitor";
	if (shai_mode_is_dynamic(connected->mode))
		expected = SHAI_FD_CONNECTION_CHECKED;
	if (connection != expected)
		return "a connection at a number that is not its mode's";
	return NULL;
}

static int
accept_monitored(struct shai_session *session)
{
	struct shai_message message;
	struct shai_connected connected;
	const char *problem;

	session->connection = shai_backend_accept();
	if (session->connection < 0)
		return -1;
	served = true;
	if (shai_exchange_receive(&message) != 0)
		return -1;
	problem = shai_decode_connected(message.bytes, &connected);
	if (problem == NULL && message.descriptor_count != 0)
		problem = "unexpected descriptors";
	if (problem == NULL)
		problem = check_connected(&connected, session->connection);
	if (problem != NULL)
		return shai_exchange_refuse(&message, "SHAI_CONNECTED", problem);
	session->mode = (enum shai_mode)connected.mode;
	session->channel = shai_backend_channel(session->mode);
	session->slot = connected.slot;
	memcpy(session->nonce, connected.nonce, sizeof(session->nonce));
	session->first_query = shai_first_query(session->nonce);
	memcpy(session->peer, connected.peer, sizeof(session->peer));
	memcpy(session->region, connected.region, sizeof(session->region));
	memcpy(session->service, connected.service, sizeof(session->service));
	memcpy(session->pipeline, connected.pipeline, sizeof(session->pipeline));
	return 0;
}

int
shai_accept(struct shai_session *session)
{
	bool baseline = shai_mode() == SHAI_MODE_BASELINE;

	if (session->state != SHAI_SESSION_EMPTY)
		return shai_fail(EBUSY, "accept: the session is in use; reset it first");
	if (served)
		return shai_fail(EPERM, "accept: this worker has served a user; it must exit");
	begin(session);
	if ((baseline ? accept_baseline(session) : accept_monitored(session)) != 0) {
		if (session->connection >= 0)
			(void)shai_session_break(session);
		return -1;
	}
	session->state = SHAI_SESSION_CONNECTED;
	return 0;
}

/* Checks that an answer brings what it announces. Returns NULL, or what is wrong. */
static const char *
check_bound(const struct shai_bound *head, const struct shai_message *message)
{
	size_t expected = head->directory_count + ((head->flags & SHAI_BOUND_KEYVALUE) != 0);

	if ((head->flags & (SHAI_BOUND_VIEW | SHAI_BOUND_DECISIONS)) != 0)
		return "what only a stub may hold";
	if (head->directory_count != 0 && !shai_backend_holds_directories())
		return "directories that the session itself may not hold";
	if (message->descriptor_count != expected)
		return "descriptors that do not match its flags";
	return NULL;
}

/* Takes over the capability set that the monitor has sent. */
static void
bind_session(
    struct shai_session *session, const struct shai_bound *head, struct shai_message *message)
{
	size_t next = 0;

	if ((head->flags & SHAI_BOUND_KEYVALUE) != 0)
		session->keyvalue = shai_message_take(message, next++);
	shai_directories_take(session, message, next, head->directory_count);
	memcpy(session->instance, head->instance, sizeof(session->instance));
	session->class_count = head->class_count;
	session->state = SHAI_SESSION_BOUND;
	shai_directories_of(session);
}

/*
 * Receives SHAI_BOUND. After a refusal the session stays connected. Any other error
 * breaks it.
 */
static int
receive_bound(struct shai_session *session, const char *principal, uint64_t sequence)
{
	struct shai_message message;
	struct shai_bound head;
	const char *problem;

	if (shai_exchange_receive(&message) != 0)
		return shai_session_break(session);
	problem = shai_decode_bound(message.bytes, sequence, &head, session->classes);
	if (problem == NULL)
		problem = check_bound(&head, &message);
	if (problem != NULL) {
		(void)shai_exchange_refuse(&message, "SHAI_BOUND", problem);
		return shai_session_break(session);
	}
	if (head.status != 0)
		return shai_fail(head.status, "authentication of %s: refused by the monitor: %s",
		    principal, head.reason);
	bind_session(session, &head, &message);
	return 0;
}

int
shai_authenticate(struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE])
{
	struct shai_authenticate request;

	if (session->state != SHAI_SESSION_CONNECTED)
		return shai_fail(ENOTCONN, "authentication: the session is not waiting for a user");
	if (principal[0] == '\0' || strchr(principal, '\n') != NULL || !shai_text_valid(principal))
		return shai_fail(EINVAL, "authentication: the principal's name is empty, has a "
					 "line break or is not UTF-8");
	memset(&request, 0, sizeof(request));
	if (shai_encode_text(request.principal, sizeof(request.principal), principal) != 0)
		return shai_fail(ENAMETOOLONG, "authentication: principal is longer than %d bytes",
		    SHAI_NAME_MAX - 1);
	if (session->mode == SHAI_MODE_BASELINE) {
		memcpy(session->instance, request.principal, sizeof(session->instance));
		session->state = SHAI_SESSION_BOUND;
		return 0;
	}
	shai_encode_header(
	    &request.header, SHAI_AUTHENTICATE, sizeof(request), shai_exchange_sequence());
	memcpy(request.signature, signature, sizeof(request.signature));
	if (shai_exchange_send(&request, sizeof(request)) != 0)
		return shai_session_break(session);
	return receive_bound(session, principal, request.header.sequence);
}

/* Tells the monitor that the session is over. Returns 0, or -1 if the monitor is gone. */
static int
say_over(void)
{
	struct shai_reset request = {.counters = *shai_counters()};

	shai_encode_header(&request.header, SHAI_RESET, sizeof(request), shai_exchange_sequence());
	return shai_exchange_send(&request, sizeof(request));
}

void
shai_reset(struct shai_session *session)
{
	if (session->state == SHAI_SESSION_EMPTY)
		return;
	shai_count(sessions, 1);
	shai_directories_of(NULL);
	/* Also in a worker that goes on: until its next session it would hold a place there. */
	if (session->keyvalue >= 0)
		(void)close(session->keyvalue);
	if (session->mode != SHAI_MODE_BASELINE && served && say_over() == 0)
		shai_backend_end_session(session->connection);
	/* Under a filter the connection's number stays occupied until the worker exits. */
	if (session->connection >= 0)
		(void)close(session->connection);
	/* A session with directories is that of a process that must exit, which closes them. */
	/*
	 * Clears only what was written: the other pages of classes were never
	 * touched.
	 */
	explicit_bzero(session,
	    offsetof(struct shai_session, classes) + session->class_count * sizeof(uint32_t));
	session->connection = -1;
	session->keyvalue = -1;
}
