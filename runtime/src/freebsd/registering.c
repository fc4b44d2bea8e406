/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Registering again: by a request for which the monitor stops this process. A stopped
 * process can be given no descriptors, so it puts them in their places itself, each time
 * that it goes on; the monitor then stops it again and looks.
 */
#include <errno.h>
#include <string.h>
#include <sys/capsicum.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend.h"
#include "exchange.h"
#include "failure.h"
#include "packet.h"
#include "requests.h"

#define SEQUENCE 1 /* the answers have a socket of their own */

static int
send_request(int socket, const struct shai_register *registration, int reply)
{
	struct shai_request_register request;
	struct iovec part = {&request, sizeof(request)};

	memset(&request, 0, sizeof(request));
	shai_encode_header(&request.header, SHAI_REQUEST_REGISTER, sizeof(request), SEQUENCE);
	request.record = *registration;
	return shai_packet_send(socket, &part, 1, &reply, 1);
}

/* Copies the descriptor to all numbers, and says so. */
static int
place(int replies, const struct shai_place *placed, int descriptor)
{
	struct shai_answer answer = {.status = 0};
	struct iovec part = {&answer, sizeof(answer)};

	shai_encode_header(&answer.header, SHAI_ANSWER, sizeof(answer), SEQUENCE);
	for (uint32_t i = 0; i < placed->count && answer.status == 0; i++)
		if (dup2(descriptor, placed->number[i]) < 0)
			answer.status = errno;
	/* What is in a place is the only copy. */
	(void)close(descriptor);
	return shai_packet_send(replies, &part, 1, NULL, 0);
}

/*
 * Receives one record. Returns 1 if more may follow, 0 after the answer, or -1 with errno,
 * EPROTO if it is neither.
 */
static int
serve(int replies)
{
	union {
		struct shai_place place;
		struct shai_answer answer;
	} record;
	struct shai_place placed;
	struct shai_answer answer;
	struct shai_bytes bytes, extra;
	int descriptors[SHAI_DESCRIPTORS_MAX];
	struct shai_packet packet = {
	    .buffer = &record, .size = sizeof(record), .descriptor = descriptors};
	ssize_t length = shai_packet_receive(replies, &packet);

	if (length < 0)
		return -1;
	bytes = (struct shai_bytes){(const uint8_t *)&record, (size_t)length};
	if (packet.flags == 0 && packet.descriptor_count == 1 &&
	    shai_decode_place(bytes, SEQUENCE, &placed) == NULL)
		return place(replies, &placed, descriptors[0]) == 0 ? 1 : -1;
	shai_packet_close(descriptors, packet.descriptor_count);
	if (packet.flags != 0 || packet.descriptor_count != 0 ||
	    shai_decode_answer(bytes, SEQUENCE, &answer, &extra) != NULL)
		answer.status = EPROTO;
	errno = answer.status;
	return answer.status == 0 ? 0 : -1;
}

/* Returns 0, or -1 with errno. */
static int
request_registration(const struct shai_register *registration)
{
	int ends[2], more = -1, error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	if (send_request(SHAI_FD_REQUESTS, registration, ends[1]) == 0) {
		/* The other side's is the only copy: its end is noticed, and it explains ours. */
		(void)close(ends[1]);
		ends[1] = -1;
		do
			more = serve(ends[0]);
		while (more > 0);
	}
	error = errno;
	shai_packet_close(ends, 2);
	errno = error;
	return more;
}

int
shai_backend_register(const struct shai_register *request, bool again)
{
	if (!again || !cap_sandboxed() || !shai_packet_socket(SHAI_FD_REQUESTS))
		return shai_exchange_send(request, sizeof(*request));
	if (request_registration(request) == 0)
		return 0;
	if (errno == EOPNOTSUPP) /* the task has no raisesTo: nothing needs to be examined */
		return shai_exchange_send(request, sizeof(*request));
	if (errno == EPIPE)
		return shai_fail(ECONNRESET, "monitor: it has closed the connection");
	return shai_fail(errno, "monitor: cannot register again: %s", strerror(errno));
}
