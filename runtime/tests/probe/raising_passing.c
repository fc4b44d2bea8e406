/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/types.h>
/* Other headers of FreeBSD need the one above. */
#include <sys/socket.h>

#include <string.h>

#include "raising_calls.h"

static int ends[2];
static char byte = '.';
static struct iovec part = {&byte, 1};

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr
message_with(union rights *rights)
{
	return (struct msghdr){.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = rights->bytes,
	    .msg_controllen = sizeof(rights->bytes)};
}

int
pass_descriptor(int descriptor)
{
	union rights rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
				   .cmsg_level = SOL_SOCKET,
				   .cmsg_type = SCM_RIGHTS}};
	struct msghdr message = message_with(&rights);

	memcpy(CMSG_DATA(&rights.head), &descriptor, sizeof(int));
	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? (int)sendmsg(ends[0], &message, 0)
							      : -1;
}

int
take_descriptor(void)
{
	union rights rights;
	struct msghdr message = message_with(&rights);
	int taken = -1;

	if (recvmsg(ends[1], &message, 0) == 1 && message.msg_controllen > 0)
		memcpy(&taken, CMSG_DATA(&rights.head), sizeof(int));
	return taken;
}
