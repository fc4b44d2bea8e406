/* SPDX-License-Identifier: BSD-2-Clause */
#include "ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet.h"
#include "requests.h"

/* Treats everything that is not an answer as a refusal. */
static int
receive_answer(int socket, int *descriptor)
{
	struct shai_answer answer;
	struct shai_bytes extra;
	int descriptors[SHAI_BATCH_MAX];
	struct shai_packet packet = {
	    .buffer = &answer, .size = sizeof(answer), .descriptor = descriptors};
	ssize_t length = shai_packet_receive(socket, &packet);

	if (length > 0 && packet.flags == 0 && packet.descriptor_count <= 1 &&
	    shai_decode_answer((struct shai_bytes){(const uint8_t *)&answer, (size_t)length},
		SHAI_ASK_SEQUENCE, &answer, &extra) == NULL) {
		if (answer.status == 0) {
			if (packet.descriptor_count == 1)
				*descriptor = descriptors[0];
			return answer.value;
		}
		errno = answer.status;
	} else {
		errno = EACCES;
	}
	shai_packet_close(descriptors, packet.descriptor_count);
	return -1;
}

int
shai_ask(int socket, const struct iovec *parts, int part_count, int directory, int *descriptor)
{
	int ends[2], along[2], result = -1, error;

	*descriptor = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	along[0] = ends[1];
	along[1] = directory;
	if (shai_packet_send(socket, parts, part_count, along, directory < 0 ? 1 : 2) == 0) {
		/* Close our copy, so that the end of the other side is noticed. */
		(void)close(ends[1]);
		ends[1] = -1;
		result = receive_answer(ends[0], descriptor);
	} else {
		errno = EACCES;
	}
	error = errno;
	shai_packet_close(ends, 2);
	errno = error;
	return result;
}

int
shai_ask_plainly(enum shai_request_type type)
{
	struct shai_header request;
	struct iovec part = {&request, sizeof(request)};
	int descriptor, result;

	shai_encode_header(&request, (int)type, sizeof(request), SHAI_ASK_SEQUENCE);
	result = shai_ask(SHAI_FD_REQUESTS, &part, 1, -1, &descriptor);
	if (descriptor >= 0)
		(void)close(descriptor);
	return result < 0 ? -1 : 0;
}

int
shai_ask_path(int socket, int directory, const char *path, int flags, uint32_t mode)
{
	struct shai_request_path request;
	struct iovec part = {&request, sizeof(request)};
	int descriptor;

	memset(&request, 0, sizeof(request));
	shai_encode_header(&request.header, SHAI_REQUEST_PATH, sizeof(request), SHAI_ASK_SEQUENCE);
	request.flags = flags;
	request.mode = mode;
	if (shai_encode_text(request.path, sizeof(request.path), path) != 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (shai_ask(socket, &part, 1, directory, &descriptor) < 0)
		return -1;
	if (descriptor < 0)
		errno = EACCES;
	return descriptor;
}
