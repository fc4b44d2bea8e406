/* SPDX-License-Identifier: BSD-2-Clause */
#include "packets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union rights {
	struct cmsghdr aligned;
	char bytes[CMSG_SPACE(SHAI_DESCRIPTORS_MAX * sizeof(int))];
};

static void
take_rights(struct msghdr *header, struct descriptors *received)
{
	received->count = 0;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
	     part = CMSG_NXTHDR(header, part)) {
		size_t count;

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		/* The kernel makes one part of all descriptors of a record. */
		count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(received->number, CMSG_DATA(part), count * sizeof(int));
		received->count = count;
	}
}

ssize_t
packet_receive(int socket, void *record, size_t size, struct descriptors *received)
{
	union rights rights;
	struct iovec part = {.iov_base = record, .iov_len = size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t length;

	if (received != NULL) {
		received->count = 0;
		header.msg_control = rights.bytes;
		header.msg_controllen = sizeof(rights.bytes);
	}
	/*
	 * Who closes a socket with unread messages leaves ECONNRESET for the other side, once.
	 * Its own messages can still be read then.
	 */
	do
		length = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (length < 0 && (errno == EINTR || errno == ECONNRESET));
	if (length < 0)
		return -1;
	if (received != NULL)
		take_rights(&header, received);
	/* Without room for them the kernel closes descriptors, and says that it did. */
	if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
		if (received != NULL)
			descriptors_close(received);
		errno = EMSGSIZE;
		return -1;
	}
	return length;
}

int
packet_send(int socket, const void *record, size_t size, const struct descriptors *with)
{
	union rights rights;
	struct iovec part = {.iov_base = (void *)(uintptr_t)record, .iov_len = size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (with != NULL && with->count > 0) {
		struct cmsghdr *first;

		memset(rights.bytes, 0, CMSG_SPACE(with->count * sizeof(int)));
		header.msg_control = rights.bytes;
		header.msg_controllen = CMSG_SPACE(with->count * sizeof(int));
		first = CMSG_FIRSTHDR(&header);
		first->cmsg_level = SOL_SOCKET;
		first->cmsg_type = SCM_RIGHTS;
		first->cmsg_len = CMSG_LEN(with->count * sizeof(int));
		memcpy(CMSG_DATA(first), with->number, with->count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -1 : 0;
}

void
descriptors_close(struct descriptors *owned)
{
	for (size_t i = 0; i < owned->count; i++)
		if (owned->number[i] >= 0)
			(void)close(owned->number[i]);
	owned->count = 0;
}

int
descriptors_take(struct descriptors *owned, size_t index)
{
	int taken = owned->number[index];

	owned->number[index] = -1;
	return taken;
}
