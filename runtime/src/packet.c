/* SPDX-License-Identifier: BSD-2-Clause */
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shai_wire.h"

union control {
	struct cmsghdr aligned;
	char bytes[CMSG_SPACE(SHAI_DESCRIPTORS_MAX * sizeof(int))];
};

int
shai_packet_send(
    int socket, const struct iovec *parts, int part_count, const int *descriptors, size_t count)
{
	union control control;
	struct msghdr header;
	ssize_t sent;

	memset(&header, 0, sizeof(header));
	header.msg_iov = (struct iovec *)(uintptr_t)parts;
	header.msg_iovlen = (__typeof(header.msg_iovlen))part_count;
	if (count > 0) {
		struct cmsghdr *rights;

		memset(&control, 0, CMSG_SPACE(count * sizeof(int)));
		header.msg_control = control.bytes;
		header.msg_controllen =
		    (__typeof(header.msg_controllen))CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = (__typeof(rights->cmsg_len))CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -1 : 0;
}

/* Collects all descriptors of a received message, in order. */
static void
collect(struct shai_packet *packet, struct msghdr *header)
{
	struct cmsghdr *control;

	packet->descriptor_count = 0;
	for (control = CMSG_FIRSTHDR(header); control != NULL;
	     control = CMSG_NXTHDR(header, control)) {
		size_t count;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		/* The control buffer has room for exactly SHAI_DESCRIPTORS_MAX descriptors. */
		count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(packet->descriptor + packet->descriptor_count, CMSG_DATA(control),
		    count * sizeof(int));
		packet->descriptor_count += count;
	}
}

ssize_t
shai_packet_receive(int socket, struct shai_packet *packet)
{
	union control control;
	struct iovec part = {.iov_base = packet->buffer, .iov_len = packet->size};
	struct msghdr header;
	ssize_t length;

	packet->descriptor_count = 0;
	do {
		memset(&header, 0, sizeof(header));
		header.msg_iov = &part;
		header.msg_iovlen = 1;
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof(control.bytes);
		length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		return -1;
	collect(packet, &header);
	packet->flags = header.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
	return length;
}

bool
shai_packet_socket(int descriptor)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_SEQPACKET;
}

void
shai_packet_close(const int *descriptors, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (descriptors[i] >= 0)
			(void)close(descriptors[i]);
}
