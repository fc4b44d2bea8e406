/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All decisions of the stub. Default deny: requests that are not named here go to the
 * monitor, which ends the connection over requests that it does not know.
 */
#include "stub_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"
#include "packet.h"
#include "registration.h"
#include "stub_rights.h"
#include "stub_session.h"
#include "view.h"

static int
open_class(struct stub *stub, uint32_t class)
{
	char name[SHAI_VIEW_CLASS_SIZE];

	if (!shai_decisions_grant(stub->decisions, class)) {
		errno = EACCES;
		return -1;
	}
	shai_view_class_name(class, name);
	return stub_for_reading((int)syscall(
	    SYS_openat, stub->view, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static void
answer_descriptor(struct stub_record *answer, uint64_t sequence, int descriptor)
{
	stub_put_answer(answer, sequence, descriptor < 0 ? -1 : 0);
	if (descriptor >= 0)
		stub_put_descriptor(answer, descriptor);
}

static void
give_directory(struct stub *stub, const struct stub_record *request, uint64_t sequence,
    struct stub_record *answer)
{
	struct shai_stub_directory asked;
	int descriptor = -1;

	if (shai_decode_stub_directory(stub_bytes(request), &asked) != NULL)
		errno = EINVAL;
	else
		descriptor = open_class(stub, asked.class);
	answer_descriptor(answer, sequence, descriptor);
}

/*
 * Handles one record of the channel. It was written by a task that has read the data
 * of all users: only a record that is exactly a transfer is passed on.
 */
static void
give_transfer(struct stub *stub, uint64_t sequence, struct stub_record *answer)
{
	struct shai_transfer transfer;
	/*
	 * One byte more than the largest transfer, so that a longer record is
	 * noticed.
	 */
	uint8_t buffer[sizeof(transfer) + 1];
	ssize_t length = -1;
	size_t count;

	errno = ENOTCONN;
	if (stub->channel >= 0 && stub->decisions != NULL)
		length = recv(stub->channel, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (length > 0 && shai_decode_transfer((struct shai_bytes){buffer, (size_t)length},
			      &transfer, &count) != NULL) {
		errno = EPROTO;
		length = -1;
	}
	stub_put_answer(answer, sequence, length);
	if (length > 0) {
		struct shai_header header;

		memcpy(answer->bytes + answer->length, buffer, (size_t)length);
		answer->length += (size_t)length;
		memcpy(&header, answer->bytes, sizeof(header));
		header.size = (uint32_t)answer->length;
		memcpy(answer->bytes, &header, sizeof(header));
	}
}

/*
 * Replaces the errors for which the kernel sends a signal, wherever they come from: a
 * session would take the signal for one about its own call.
 */
static int
unsignalled(int result)
{
	if (result < 0 && (errno == ENOTCAPABLE || errno == ECAPMODE))
		errno = EACCES;
	return result;
}

int
stub_may_write(struct stub *stub, int number)
{
	struct shai_request_send request;
	struct iovec part = {&request, sizeof(request)};
	int descriptor;

	if (number != stub->connection_number || stub->connection < 0) {
		errno = EBADF;
		return -1;
	}
	memset(&request, 0, sizeof(request));
	shai_encode_header(&request.header, SHAI_REQUEST_SEND, sizeof(request), SHAI_ASK_SEQUENCE);
	request.number = number;
	if (shai_ask(stub->requests, &part, 1, -1, &descriptor) < 0)
		return unsignalled(-1);
	shai_packet_close(&descriptor, 1); /* the stub has a copy of its own */
	return stub->connection;
}

static void
write_checked(struct stub *stub, const struct stub_record *request, uint64_t sequence,
    struct stub_record *answer)
{
	struct shai_stub_write asked;
	struct shai_bytes data;
	ssize_t written = -1;
	int descriptor = -1;

	if (shai_decode_stub_write(stub_bytes(request), &asked, &data) != NULL)
		errno = EINVAL;
	else
		descriptor = stub_may_write(stub, asked.number);
	if (descriptor >= 0)
		written = send(descriptor, data.start, data.length, MSG_NOSIGNAL);
	stub_put_answer(answer, sequence, written);
}

/*
 * Opens a file of the view. The decisions decide: what they do not cover is refused
 * here, as a kernel that knew them would refuse it.
 */
static int
open_in_view(struct stub *stub, const char *rest, int flags)
{
	const char *name;
	uint32_t class;
	int directory, descriptor, error;

	if (!shai_decisions_cover(stub->decisions, rest, flags, &class, &name)) {
		errno = EACCES;
		return -1;
	}
	directory = open_class(stub, class);
	if (directory < 0)
		return -1;
	descriptor = (int)syscall(SYS_openat, directory, name, flags | O_NOFOLLOW | O_CLOEXEC);
	error = errno;
	(void)close(directory);
	errno = error;
	return descriptor;
}

int
stub_open(struct stub *stub, int directory, const char *path, int flags, uint32_t mode)
{
	char normal[SHAI_REQUEST_PATH_MAX];
	const struct shai_capability *capability = NULL;
	const char *rest;

	if (path[0] == '/' && shai_path_normalise(path, normal, sizeof(normal)) == 0)
		capability = shai_table_find(shai_table_current(), normal, &rest);
	if (capability != NULL && capability->number == SHAI_FD_CAPABILITY)
		return unsignalled(open_in_view(stub, rest, flags));
	return unsignalled(shai_ask_path(stub->requests, directory, path, flags, mode));
}

static void
open_path(struct stub *stub, const struct stub_record *request, uint64_t sequence,
    struct stub_record *answer)
{
	struct shai_request_path asked;
	int directory = request->descriptor_count > 1 ? request->descriptor[1] : -1;
	int descriptor = -1;

	if (shai_decode_request_path(stub_bytes(request), &asked) != NULL)
		errno = EINVAL;
	else
		descriptor = stub_open(stub, directory, asked.path, asked.flags, asked.mode);
	answer_descriptor(answer, sequence, descriptor);
}

enum stub_outcome
stub_handle(struct stub *stub, const struct stub_record *request, struct stub_record *answer,
    struct stub_record *second)
{
	struct shai_header header;

	answer->length = answer->descriptor_count = 0;
	second->length = second->descriptor_count = 0;
	if (stub_ended(stub))
		return STUB_OVER;
	if (request->length < sizeof(header))
		return STUB_BROKEN;
	memcpy(&header, request->bytes, sizeof(header));
	switch (header.type) {
	case SHAI_STUB_ACCEPT:
		return stub_accept(stub, header.sequence, answer, second);
	case SHAI_STUB_DIRECTORY:
		give_directory(stub, request, header.sequence, answer);
		return STUB_ANSWER;
	case SHAI_STUB_TRANSFER:
		give_transfer(stub, header.sequence, answer);
		return STUB_ANSWER;
	case SHAI_STUB_WRITE:
		write_checked(stub, request, header.sequence, answer);
		return STUB_ANSWER;
	case SHAI_REQUEST_PATH:
		open_path(stub, request, header.sequence, answer);
		return STUB_ANSWER;
	default:
		return stub_relay(stub, request, &header, answer);
	}
}
