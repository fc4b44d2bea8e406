/* SPDX-License-Identifier: BSD-2-Clause */
#include "stand_in.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define STORE 900 /* descriptor number of the store's end */

struct stand_in stand_in = {.mode = SHAI_MODE_SHAI};

static void
must(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		abort();
	}
}

/* A key-value connection with replies for some queries already in it. */
static int
keyvalue(void)
{
	static const char queries[] = "$41\r\n{\"friends\":[\"bob\"],\"interests\":[\"sky\"]}\r\n"
				      "$17\r\ntopic(\"weather\")\n\r\n:1\r\n+OK\r\n";
	const char *replies = stand_in.replies != NULL ? stand_in.replies : queries;
	int ends[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
	for (int i = 0; i < 64; i++)
		must(write(ends[1], replies, strlen(replies)) > 0, "write");
	/* The other end stays open: a store that hangs up is another case. Its number goes into
	 * "slot". */
	must(dup2(ends[1], 900) == 900, "dup2");
	close(ends[1]);
	return ends[0];
}

int
stand_in_session(struct shai_session *session, bool bound, int *queries)
{
	int connection[2], line[2];

	memset(session, 0, sizeof *session);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, connection) == 0, "socketpair");
	must(pipe(line) == 0, "pipe");
	session->connection = connection[0];
	session->query_pipe = line[1];
	session->channel = -1;
	session->keyvalue = keyvalue();
	session->mode = stand_in.mode;
	session->state = bound ? SHAI_SESSION_BOUND : SHAI_SESSION_CONNECTED;
	strcpy(session->instance, bound ? "worker(alice, de)" : "");
	*queries = line[0];
	return connection[1];
}

void
stand_in_end(struct shai_session *session)
{
	close(session->connection);
	close(session->query_pipe);
	if (session->keyvalue >= 0)
		close(session->keyvalue);
}

const char *
shai_reason(void)
{
	return "the stand-in refuses";
}

enum shai_mode
shai_mode(void)
{
	return stand_in.mode;
}

pid_t
shai_fork_worker(uint32_t slot)
{
	int result;

	(void)slot;
	must(stand_in.forks != NULL, "fork");
	result = *stand_in.forks++;
	errno = result < 0 ? -result : 0;
	return result < 0 ? -1 : result;
}

int
shai_accept(struct shai_session *session)
{
	(void)session;
	errno = ECONNRESET;
	return -1;
}

int
shai_authenticate(struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE])
{
	(void)principal;
	(void)signature;
	if (stand_in.refuse_login) {
		errno = EACCES;
		return -1;
	}
	session->state = SHAI_SESSION_BOUND;
	return 0;
}

void
shai_reset(struct shai_session *session)
{
	session->state = SHAI_SESSION_EMPTY;
}

ssize_t
shai_channel_receive(
    struct shai_session *session, uint32_t query, struct shai_document *out, size_t max)
{
	size_t count = 0;

	(void)query;
	if (stand_in.receive_error != 0) {
		if (stand_in.receive_error != ETIMEDOUT)
			session->state = SHAI_SESSION_BROKEN;
		errno = stand_in.receive_error;
		return -1;
	}
	for (; stand_in.documents != NULL && stand_in.documents[count] != NULL && count < max;
	     count++) {
		size_t size = strlen(stand_in.documents[count]);
		int descriptor = memfd_create("document", MFD_CLOEXEC);

		must(pwrite(descriptor, stand_in.documents[count], size, 0) == (ssize_t)size,
		    "pwrite");
		out[count] = (struct shai_document){
		    .conduit = (uint32_t)count + 1, .descriptor = descriptor};
	}
	session->withheld = stand_in.withheld;
	return (ssize_t)count;
}

size_t
shai_signed_text(
    const struct shai_session *session, const char *principal, char out[SHAI_SIGNED_TEXT_SIZE])
{
	int length;

	if (principal[0] == '\0' || strlen(principal) >= SHAI_NAME_MAX ||
	    strchr(principal, '\n') != NULL)
		return 0;
	length = sprintf(out, "%s%s\n%s\n%s\n", SHAI_SIGNED_PREFIX, session->service,
	    session->pipeline, principal);
	for (size_t i = 0; i < SHAI_NONCE_SIZE; i++)
		length += sprintf(out + length, "%02x", session->nonce[i]);
	return (size_t)length;
}

int
shai_write(struct shai_session *session, const char *conduit, const void *content, size_t size,
    uint32_t flags)
{
	(void)session;
	stand_in.written_flags = flags;
	snprintf(stand_in.written, sizeof stand_in.written, "%s %.*s", conduit, (int)size,
	    (const char *)content);
	errno = stand_in.write_error;
	return stand_in.write_error == 0 ? 0 : -1;
}

ssize_t
shai_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max)
{
	bool logged = stand_in.written[0] != '\0' && stand_in.write_error == 0;

	stand_in.opens++;
	session->withheld = 0;
	if (count == 0 || max == 0 || stand_in.opened == NULL)
		return 0;
	if (stand_in.open_needs_entry && !logged) {
		session->withheld = 1;
		return 0;
	}
	out[0].conduit = conduits[0];
	out[0].descriptor = memfd_create("document", MFD_CLOEXEC);
	must(out[0].descriptor >= 0, "memfd_create");
	must(write(out[0].descriptor, stand_in.opened, strlen(stand_in.opened)) > 0, "write");
	must(lseek(out[0].descriptor, 0, SEEK_SET) == 0, "lseek");
	return 1;
}

int
shai_choices(struct shai_session *session, uint32_t conduit, struct shai_offer *out)
{
	(void)session;
	(void)conduit;
	if (stand_in.offer == NULL) {
		errno = EACCES;
		return -1;
	}
	*out = *stand_in.offer;
	return 0;
}

int
shai_choose(struct shai_session *session, uint32_t conduit, const char *policy,
    const unsigned char signature[SHAI_SIGNATURE_SIZE], char reason[SHAI_REASON_MAX])
{
	int length = snprintf(stand_in.chosen, sizeof stand_in.chosen, "%u %s ", conduit, policy);

	for (size_t i = 0; i < SHAI_SIGNATURE_SIZE; i++)
		length += snprintf(stand_in.chosen + length,
		    sizeof stand_in.chosen - (size_t)length, "%02x", signature[i]);
	if (stand_in.choose_error == ECONNRESET)
		session->state = SHAI_SESSION_BROKEN;
	strcpy(reason, stand_in.choose_error == EACCES ? "the signature is another's" : "");
	errno = stand_in.choose_error;
	return stand_in.choose_error == 0 ? 0 : -1;
}
