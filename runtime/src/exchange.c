/* SPDX-License-Identifier: BSD-2-Clause */
#include "exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "failure.h"
#include "packet.h"

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
	return shai_packet_socket(SHAI_FD_MONITOR);
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

int
shai_exchange_receive(struct shai_message *message)
{
	struct shai_packet packet = {.buffer = record_buffer,
	    .size = sizeof(record_buffer),
	    .descriptor = message->descriptor};
	ssize_t length = shai_packet_receive(SHAI_FD_MONITOR, &packet);

	message->descriptor_count = packet.descriptor_count;
	if (length < 0)
		return shai_fail(errno, "monitor: cannot receive a record: %s", strerror(errno));
	message->bytes = (struct shai_bytes){record_buffer, (size_t)length};
	if (length == 0) {
		shai_message_discard(message);
		return shai_fail(ECONNRESET, "monitor: it has closed the connection");
	}
	if ((packet.flags & MSG_TRUNC) != 0)
		return shai_exchange_refuse(
		    message, "its record", "longer than the protocol allows");
	if ((packet.flags & MSG_CTRUNC) != 0)
		return shai_exchange_refuse(
		    message, "its record", "with more descriptors than this process can hold");
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
	shai_packet_close(message->descriptor, message->descriptor_count);
	message->descriptor_count = 0;
}

/*
 * The socket is shut down but not closed: if its number became free, the next open
 * would get a descriptor that the filter trusts.
 */
int
shai_exchange_refuse(struct shai_message *message, const char *record, const char *problem)
{
	shai_message_discard(message);
	(void)shutdown(SHAI_FD_MONITOR, SHUT_RDWR);
	return shai_fail(EPROTO, "monitor: %s refused: %s; connection ended", record, problem);
}
