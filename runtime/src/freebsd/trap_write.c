/* SPDX-License-Identifier: BSD-2-Clause */
#include "trap_write.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"
#include "records.h"

#define PARTS_MAX 16 /* of one writev(2); the caller writes the rest, as after a short write */

ssize_t
shai_trap_write(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS])
{
	struct shai_request_send request;
	struct iovec part = {&request, sizeof(request)};
	int descriptor, error;
	ssize_t written;

	memset(&request, 0, sizeof(request));
	shai_encode_header(&request.header, SHAI_REQUEST_SEND, sizeof(request), SHAI_ASK_SEQUENCE);
	request.number = (int32_t)arguments[0];
	if (shai_ask(SHAI_FD_REQUESTS, &part, 1, -1, &descriptor) < 0)
		return -1;
	if (descriptor < 0) {
		errno = EACCES;
		return -1;
	}
	/* Repeat the call with another descriptor. */
	written = syscall(number, descriptor, arguments[1], arguments[2], arguments[3],
	    arguments[4], arguments[5]);
	error = errno;
	(void)close(descriptor);
	errno = error;
	return written;
}

/*
 * Finds the bytes that a call writes. Returns the number of parts, or -1 if the call
 * does more than write.
 */
static int
parts_of(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], struct iovec out[PARTS_MAX])
{
	const struct msghdr *message = (const void *)(uintptr_t)arguments[1];
	const struct iovec *list = (const void *)(uintptr_t)arguments[1];
	int count = (int)arguments[2];

	switch (number) {
	case SYS_sendto:
		if (arguments[4] != 0)
			return -1;
		/* FALLTHROUGH */
	case SYS_write:
		out[0] = (struct iovec){(void *)(uintptr_t)arguments[1], arguments[2]};
		return 1;
	case SYS_sendmsg:
		if (message->msg_name != NULL || message->msg_controllen != 0)
			return -1;
		list = message->msg_iov;
		count = message->msg_iovlen;
		/* FALLTHROUGH */
	case SYS_writev:
		count = count < PARTS_MAX ? count : PARTS_MAX;
		for (int i = 0; i < count; i++)
			out[i] = list[i];
		return count;
	default:
		return -1;
	}
}

/* Shortens parts to the size of one record. Returns the sum of their lengths. */
static size_t
shorten(struct iovec *parts, int count)
{
	size_t left = SHAI_STUB_WRITE_MAX;

	for (int i = 0; i < count; i++) {
		if (parts[i].iov_len > left)
			parts[i].iov_len = left;
		left -= parts[i].iov_len;
	}
	return SHAI_STUB_WRITE_MAX - left;
}

ssize_t
shai_trap_write_by_stub(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS])
{
	struct shai_stub_write request;
	struct iovec parts[1 + PARTS_MAX] = {{&request, sizeof(request)}};
	int count = parts_of(number, arguments, parts + 1);
	int descriptor;
	ssize_t written;

	if (count < 0) {
		errno = EOPNOTSUPP;
		return -1;
	}
	memset(&request, 0, sizeof(request));
	request.number = (int32_t)arguments[0];
	request.size = (uint32_t)shorten(parts + 1, count);
	if (request.size == 0)
		return 0;
	shai_encode_header(
	    &request.header, SHAI_STUB_WRITE, sizeof(request) + request.size, SHAI_ASK_SEQUENCE);
	written = shai_ask(SHAI_FD_MONITOR, parts, 1 + count, -1, &descriptor);
	if (descriptor >= 0)
		(void)close(descriptor);
	return written;
}
