/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The answers that come on a session's channel. The sender is a task that has read the
 * data of all users, so only ids may pass: a record that is not exactly a transfer
 * breaks the session.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "counters.h"
#include "documents.h"
#include "failure.h"
#include "records.h"
#include "transfers.h"

static int64_t
now_milliseconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until there is something to read. Returns from where, or -1 after shai_fail. */
static int
wait_readable(const struct shai_session *session, int64_t deadline)
{
	const int decisions = session->mode == SHAI_MODE_BASELINE ? -1 : shai_backend_decisions();
	struct pollfd wanted[] = {
	    {.fd = session->channel, .events = POLLIN}, {.fd = decisions, .events = POLLIN}};

	for (;;) {
		int64_t left = deadline - now_milliseconds();
		int ready;

		if (left < 0)
			left = 0;
		ready = poll(wanted, 2, (int)left);
		if (ready > 0)
			return wanted[wanted[0].revents == 0].fd;
		if (ready == 0)
			return shai_fail(ETIMEDOUT, "channel: no answer in time");
		if (errno != EINTR)
			return shai_fail(errno, "channel: cannot wait: %s", strerror(errno));
	}
}

/*
 * Receives the next record, which may answer any query. Returns its length, 0 if the sender
 * is gone, or -1 after shai_fail. The session is then broken, except after a timeout.
 */
static ssize_t
receive_record(
    struct shai_session *session, uint32_t query, int64_t deadline, uint8_t *buffer, size_t size)
{
	ssize_t length = (ssize_t)shai_transfers_take(buffer);
	int from;

	if (length > 0)
		return length;
	do {
		from = wait_readable(session, deadline);
		if (from < 0)
			return -1;
		length = session->mode == SHAI_MODE_BASELINE
			     ? read(from, buffer, size)
			     : shai_backend_receive_transfer(from, query, buffer, size);
	} while (length < 0 && (errno == EINTR || errno == EAGAIN));
	if (length >= 0)
		return length;
	shai_record_failure(errno, "channel: cannot read: %s", strerror(errno));
	return shai_session_break(session);
}

/*
 * Receives one transfer, which may answer any query. Returns 0, or -1 after
 * shai_fail. The session is then broken, except after a timeout.
 */
static int
receive_transfer(struct shai_session *session, uint32_t query, int64_t deadline,
    struct shai_transfer *transfer, size_t *count)
{
	/*
	 * One byte more than the largest transfer, so that a longer record is
	 * noticed.
	 */
	uint8_t buffer[sizeof(*transfer) + 1];
	const char *problem;
	ssize_t length = receive_record(session, query, deadline, buffer, sizeof(buffer));

	if (length < 0)
		return -1;
	if (length == 0) {
		shai_record_failure(EPIPE, "channel: its sender is gone");
		return shai_session_break(session);
	}
	problem =
	    shai_decode_transfer((struct shai_bytes){buffer, (size_t)length}, transfer, count);
	if (problem != NULL) {
		shai_record_failure(EPROTO, "channel: transfer refused: %s", problem);
		return shai_session_break(session);
	}
	return 0;
}

ssize_t
shai_channel_receive(
    struct shai_session *session, uint32_t query, struct shai_document *out, size_t max)
{
	struct shai_transfer transfer;
	int64_t deadline = now_milliseconds() + session->timeout_milliseconds;
	size_t count;

	session->withheld = 0;
	if (session->state != SHAI_SESSION_BOUND)
		return shai_fail(ENOTCONN, "channel: the session is not bound to a user");
	do
		if (receive_transfer(session, query, deadline, &transfer, &count) != 0)
			return -1;
	while (transfer.query != query);
	shai_count(transfers, count);
	return shai_documents_open(session, transfer.conduit, count, out, max);
}
