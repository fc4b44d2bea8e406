/* SPDX-License-Identifier: BSD-2-Clause */
#include "keyvalue.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "replies.h"

#define REPLIES_MAX 64          /* that a session may leave unread */
#define RECEIVED_MAX (1u << 20) /* bytes of them */

struct keyvalue {
	const struct shai_control_store *store;
	enum keyvalue_state state;
	int descriptor;
	int send_buffer; /* of the new socket, as SO_SNDBUF sets it */
	int64_t deadline;
	struct replies replies;
	char *out; /* what is being sent, of redisFormatCommandArgv */
	size_t out_length, out_at;
	unsigned int unread; /* replies that the session left */
	size_t received;     /* bytes of them */
	char reason[SHAI_REASON_MAX];
};

/* ----------------------------------------------------------------------- connection */

static void
forget_output(struct keyvalue *keyvalue)
{
	if (keyvalue->out != NULL) {
		sodium_memzero(keyvalue->out, keyvalue->out_length);
		redisFreeCommand(keyvalue->out);
	}
	keyvalue->out = NULL;
	keyvalue->out_length = keyvalue->out_at = 0;
}

static void
shut(struct keyvalue *keyvalue, const char *reason)
{
	forget_output(keyvalue);
	if (keyvalue->descriptor >= 0)
		close(keyvalue->descriptor);
	replies_end(&keyvalue->replies);
	keyvalue->descriptor = -1;
	keyvalue->state = KEYVALUE_CLOSED;
	keyvalue->deadline = INT64_MAX;
	snprintf(keyvalue->reason, sizeof(keyvalue->reason), "%s", reason);
}

static void
shut_with_error(struct keyvalue *keyvalue, const char *what)
{
	char reason[SHAI_REASON_MAX];

	snprintf(reason, sizeof(reason), "%s: %s", what, strerror(errno));
	shut(keyvalue, reason);
}

/* Connecting must not wait while the store's queue is full; the worker waits for replies. */
static int
connected_socket(const char path[SHAI_STORE_PATH_MAX])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	static_assert(sizeof(address.sun_path) == SHAI_STORE_PATH_MAX, "a socket's path");
	memcpy(address.sun_path, path, sizeof(address.sun_path));
	if (descriptor >= 0 &&
	    (connect(descriptor, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
		fcntl(descriptor, F_SETFL, 0) != 0)) {
		int error = errno;

		close(descriptor);
		errno = error;
		return -1;
	}
	return descriptor;
}

/*
 * The socket stays, and a worker may set these of its options, and flags of its file. The
 * next one would find them.
 */
static bool
restore_settings(const struct keyvalue *keyvalue)
{
	static const int off;
	/* Switched off alone, the kernel keeps the time, and tells it. */
	static const struct linger no_time = {.l_onoff = 1}, no_linger;
	static const struct timeval never;
	const struct {
		int option;
		socklen_t size;
		const void *value;
	} settings[] = {{SO_SNDBUF, sizeof(int), &keyvalue->send_buffer},
	    {SO_KEEPALIVE, sizeof(off), &off}, {SO_LINGER, sizeof(no_time), &no_time},
	    {SO_LINGER, sizeof(no_linger), &no_linger}, {SO_RCVTIMEO, sizeof(never), &never},
	    {SO_SNDTIMEO, sizeof(never), &never}};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (setsockopt(keyvalue->descriptor, SOL_SOCKET, settings[i].option,
			settings[i].value, settings[i].size) != 0)
			return false;
	return fcntl(keyvalue->descriptor, F_SETFL, 0) == 0;
}

static bool
open_connection(struct keyvalue *keyvalue)
{
	socklen_t size = sizeof(keyvalue->send_buffer);

	keyvalue->descriptor = connected_socket(keyvalue->store->path);
	if (keyvalue->descriptor < 0 || getsockopt(keyvalue->descriptor, SOL_SOCKET, SO_SNDBUF,
					    &keyvalue->send_buffer, &size) != 0) {
		shut_with_error(keyvalue, "connect to the key-value store");
		return false;
	}
	keyvalue->send_buffer /= 2; /* the kernel doubles what is set */
	if (!replies_begin(&keyvalue->replies)) {
		shut(keyvalue, "connect to the key-value store: out of memory");
		return false;
	}
	keyvalue->state = KEYVALUE_CLEAN;
	return true;
}

/* Sends what is left of the command, as far as there is room. */
static void
flush(struct keyvalue *keyvalue)
{
	while (keyvalue->out_at < keyvalue->out_length) {
		ssize_t sent = send(keyvalue->descriptor, keyvalue->out + keyvalue->out_at,
		    keyvalue->out_length - keyvalue->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			shut_with_error(keyvalue, "write to the key-value store");
			return;
		}
		keyvalue->out_at += (size_t)sent;
	}
	forget_output(keyvalue);
}

/* Sends a command, whose reply the new state awaits. */
static void
command(struct keyvalue *keyvalue, enum keyvalue_state state, int count, const char **words)
{
	int length = redisFormatCommandArgv(&keyvalue->out, count, words, NULL);

	if (length < 0) {
		keyvalue->out = NULL;
		shut(keyvalue, "write to the key-value store: out of memory");
		return;
	}
	keyvalue->out_length = (size_t)length;
	keyvalue->out_at = 0;
	keyvalue->state = state;
	flush(keyvalue);
}

/* ----------------------------------------------------------------------------- states */

static void
settle(struct keyvalue *keyvalue, enum keyvalue_state state)
{
	keyvalue->state = state;
	keyvalue->deadline = INT64_MAX;
}

/* The store owes no further reply when nothing follows this one. */
static bool
answered(const struct keyvalue *keyvalue, enum reply reply, enum reply wanted)
{
	return reply == wanted && keyvalue->out == NULL && replies_empty(&keyvalue->replies);
}

static void
take_reply(struct keyvalue *keyvalue, enum reply reply)
{
	const char *reset[] = {keyvalue->store->reset};

	switch (keyvalue->state) {
	case KEYVALUE_LOGIN:
		if (answered(keyvalue, reply, REPLY_OK))
			settle(keyvalue, KEYVALUE_READY);
		else
			shut(keyvalue, "the key-value store refused the session's user");
		break;
	case KEYVALUE_PROBE:
		if (answered(keyvalue, reply, REPLY_PROBE))
			command(keyvalue, KEYVALUE_RESETTING, 1, reset);
		else if (++keyvalue->unread > REPLIES_MAX)
			shut(keyvalue, "the session left too many replies unread");
		break;
	case KEYVALUE_RESETTING:
		if (answered(keyvalue, reply, REPLY_RESET))
			settle(keyvalue, KEYVALUE_CLEAN);
		else
			shut(keyvalue, "the key-value store did not reset the connection");
		break;
	default:
		shut(keyvalue, "the key-value store sent what it was not asked for");
		break;
	}
}

static void
take_replies(struct keyvalue *keyvalue)
{
	while (keyvalue->state != KEYVALUE_CLOSED) {
		enum reply reply = replies_next(&keyvalue->replies);

		if (reply == REPLY_NONE)
			return;
		if (reply == REPLY_BROKEN)
			shut(keyvalue, "the key-value store's replies break its protocol");
		else
			take_reply(keyvalue, reply);
	}
}

/* Reads once; what is left is there in the loop's next turn. */
static void
receive(struct keyvalue *keyvalue)
{
	char buffer[16384];
	ssize_t length;

	do
		length = recv(keyvalue->descriptor, buffer, sizeof(buffer), MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0 && errno == EAGAIN)
		return;
	if (length < 0)
		shut_with_error(keyvalue, "read from the key-value store");
	else if (length == 0)
		shut(keyvalue, "the key-value store closed the connection");
	else if ((keyvalue->received += (size_t)length) > RECEIVED_MAX)
		shut(keyvalue, "the session left too much unread");
	else if (!replies_feed(&keyvalue->replies, buffer, (size_t)length))
		shut(keyvalue, "read from the key-value store: out of memory");
	else
		take_replies(keyvalue);
}

static void
begin(struct keyvalue *keyvalue, int64_t now)
{
	keyvalue->deadline = now + KEYVALUE_TIMEOUT;
	keyvalue->received = 0;
	keyvalue->unread = 0;
}

/* ---------------------------------------------------------------------------- interface */

struct keyvalue *
keyvalue_new(const struct shai_control_store *store)
{
	struct keyvalue *keyvalue = calloc(1, sizeof(*keyvalue));

	if (keyvalue == NULL)
		return NULL;
	keyvalue->store = store;
	keyvalue->descriptor = -1;
	keyvalue->deadline = INT64_MAX;
	return keyvalue;
}

void
keyvalue_free(struct keyvalue *keyvalue)
{
	if (keyvalue == NULL)
		return;
	shut(keyvalue, "");
	free(keyvalue);
}

void
keyvalue_login(struct keyvalue *keyvalue, const char *user, const char *password, int64_t now)
{
	const char *words[] = {keyvalue->store->auth, user, password};

	if (keyvalue->state != KEYVALUE_CLEAN) {
		shut(keyvalue, "");
		if (!open_connection(keyvalue))
			return;
	}
	begin(keyvalue, now);
	command(keyvalue, KEYVALUE_LOGIN, 3, words);
}

void
keyvalue_reset(struct keyvalue *keyvalue, int64_t now)
{
	const char *words[] = {keyvalue->replies.token};

	if (keyvalue->state == KEYVALUE_LOGIN)
		shut(keyvalue, "the session ended while its user was being authenticated");
	if (keyvalue->state != KEYVALUE_READY)
		return;
	if (!restore_settings(keyvalue)) {
		shut_with_error(keyvalue, "restore the settings of the connection");
		return;
	}
	replies_draw_token(&keyvalue->replies);
	begin(keyvalue, now);
	command(keyvalue, KEYVALUE_PROBE, 1, words);
}

void
keyvalue_continue(struct keyvalue *keyvalue, int64_t now)
{
	if (keyvalue->state == KEYVALUE_CLOSED || keyvalue->state == KEYVALUE_READY)
		return;
	if (keyvalue->out != NULL)
		flush(keyvalue);
	if (keyvalue->state != KEYVALUE_CLOSED)
		receive(keyvalue);
	if (now >= keyvalue->deadline)
		shut(keyvalue, "the key-value store did not answer in time");
}

enum keyvalue_state
keyvalue_state(const struct keyvalue *keyvalue)
{
	return keyvalue->state;
}

int
keyvalue_descriptor(const struct keyvalue *keyvalue)
{
	return keyvalue->descriptor;
}

uint32_t
keyvalue_events(const struct keyvalue *keyvalue)
{
	if (keyvalue->state == KEYVALUE_CLOSED || keyvalue->state == KEYVALUE_READY)
		return 0;
	return keyvalue->out == NULL ? EPOLLIN : EPOLLIN | EPOLLOUT;
}

int64_t
keyvalue_deadline(const struct keyvalue *keyvalue)
{
	return keyvalue->deadline;
}

const char *
keyvalue_reason(const struct keyvalue *keyvalue)
{
	return keyvalue->reason;
}
