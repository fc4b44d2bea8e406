/* SPDX-License-Identifier: BSD-2-Clause */
#include "stub_record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet.h"

struct shai_bytes
stub_bytes(const struct stub_record *record)
{
	return (struct shai_bytes){record->bytes, record->length};
}

void
stub_put(struct stub_record *out, const void *bytes, size_t length)
{
	out->descriptor_count = 0;
	out->length = length;
	memcpy(out->bytes, bytes, length);
}

void
stub_put_descriptor(struct stub_record *out, int descriptor)
{
	out->descriptor[out->descriptor_count++] = descriptor;
}

void
stub_put_answer(struct stub_record *out, uint64_t sequence, long result)
{
	struct shai_answer answer = {
	    .status = result < 0 ? errno : 0, .value = result < 0 ? 0 : (int32_t)result};

	shai_encode_header(&answer.header, SHAI_ANSWER, sizeof(answer), sequence);
	stub_put(out, &answer, sizeof(answer));
}

int
stub_receive(int socket, struct stub_record *record)
{
	struct shai_packet packet = {.buffer = record->bytes,
	    .size = sizeof(record->bytes),
	    .descriptor = record->descriptor};
	ssize_t length = shai_packet_receive(socket, &packet);

	record->length = 0;
	record->descriptor_count = packet.descriptor_count;
	if (length > 0 && packet.flags != 0) {
		stub_discard(record);
		errno = EPROTO;
		return -1;
	}
	if (length <= 0)
		return (int)length;
	record->length = (size_t)length;
	return 1;
}

int
stub_send(int socket, struct stub_record *record)
{
	struct iovec part = {record->bytes, record->length};
	int result =
	    shai_packet_send(socket, &part, 1, record->descriptor, record->descriptor_count);
	int error = errno;

	stub_discard(record);
	errno = error;
	return result;
}

void
stub_discard(struct stub_record *record)
{
	shai_packet_close(record->descriptor, record->descriptor_count);
	record->descriptor_count = 0;
}

/* Records are larger than the default buffers of these sockets. */
static int
make_room(int socket)
{
	int size = 2 * SHAI_WIRE_MAX;

	if (setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) != 0)
		return -1;
	return setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

int
stub_make_mailbox(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	if (make_room(ends[0]) == 0 && make_room(ends[1]) == 0)
		return 0;
	shai_packet_close(ends, 2);
	return -1;
}

int
stub_aside(int descriptor, int above)
{
	int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, above + 1);
	int error = errno;

	(void)close(descriptor);
	errno = error;
	return moved;
}
