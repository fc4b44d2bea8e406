/* SPDX-License-Identifier: BSD-2-Clause */
#include "exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "failure.h"

static uint64_t last_sequence;
static uint8_t record_buffer[SHAI_WIRE_MAX];

uint64_t
shai_exchange_sequence(void)
{
	return ++last_sequence;
}

bool
shai_exchange_present(void)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(SHAI_FD_MONITOR, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_SEQPACKET;
}

int
shai_exchange_send(const void *record, size_t length)
{
	ssize_t sent;

	do
		sent = send(SHAI_FD_MONITOR, record, length, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && errno == EPIPE)
		return shai_fail(ECONNRESET, "monitor: it has closed the connection");
	if (sent < 0)
		return shai_fail(errno, "monitor: cannot send a record: %s", strerror(errno));
	return 0;
}

/* Collects the descriptors of a received message, all of them, in order. */
static void
collect(struct shai_message *message, struct msghdr *header)
{
	struct cmsghdr *control;

	message->descriptor_count = 0;
	for (control = CMSG_FIRSTHDR(header); control != NULL;
	     control = CMSG_NXTHDR(header, control)) {
		size_t count;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		/* The control buffer has room for SHAI_BATCH_MAX descriptors, no more. */
		count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(message->descriptor + message->descriptor_count, CMSG_DATA(control),
		    count * sizeof(int));
		message->descriptor_count += count;
	}
}

int
shai_exchange_receive(struct shai_message *message)
{
	union {
		struct cmsghdr aligned;
		char bytes[CMSG_SPACE(SHAI_BATCH_MAX * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = record_buffer, .iov_len = sizeof(record_buffer)};
	struct msghdr header;
	ssize_t length;

	do {
		memset(&header, 0, sizeof(header));
		header.msg_iov = &part;
		header.msg_iovlen = 1;
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		length = recvmsg(SHAI_FD_MONITOR, &header, MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR);
	message->descriptor_count = 0;
	if (length < 0)
		return shai_fail(errno, "monitor: cannot receive a record: %s", strerror(errno));
	collect(message, &header);
	message->bytes = (struct shai_bytes){record_buffer, (size_t)length};
	if (length == 0) {
		shai_message_discard(message);
		return shai_fail(ECONNRESET, "monitor: it has closed the connection");
	}
	if ((header.msg_flags & MSG_TRUNC) != 0)
		return shai_exchange_refuse(message, "its record", "longer than any may be");
	if ((header.msg_flags & MSG_CTRUNC) != 0)
		return shai_exchange_refuse(
		    message, "its record", "with descriptors this process has no room for");
	return 0;
}

int
shai_message_take(struct shai_message *message, size_t i)
{
	int descriptor = message->descriptor[i];

	message->descriptor[i] = -1;
	return descriptor;
}

void
shai_message_discard(struct shai_message *message)
{
	for (size_t i = 0; i < message->descriptor_count; i++)
		if (message->descriptor[i] >= 0)
			(void)close(message->descriptor[i]);
	message->descriptor_count = 0;
}

/*
 * Shut down and not closed: the number must stay taken, or the next open would
 * land on a descriptor that the filter trusts.
 */
int
shai_exchange_refuse(struct shai_message *message, const char *record, const char *problem)
{
	shai_message_discard(message);
	(void)shutdown(SHAI_FD_MONITOR, SHUT_RDWR);
	return shai_fail(EPROTO, "monitor: %s refused: %s; connection ended", record, problem);
}
