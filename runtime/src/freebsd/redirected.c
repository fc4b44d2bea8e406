/* SPDX-License-Identifier: BSD-2-Clause */
#include "redirected.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contexts.h"
#include "packet.h"
#include "refused_call.h"
#include "stub_requests.h"
#include "stub_session.h"

#define PAGE 4096

static struct stub_record request, reply, second;

/* ------------------------------------------------ across the two address spaces */

/*
 * Reads text from the session's memory, page by page, because the memory after its
 * end may not be mapped. Returns 0, or -1 with errno.
 */
static int
read_text(const struct context_links *links, uint64_t address, char *out, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t part = PAGE - (address + done) % PAGE;
		uint64_t arguments[LWC_ARGUMENTS] = {
		    (uint64_t)links->into_pipe, address + done, part};
		ssize_t length;

		if (part > size - done)
			arguments[2] = part = size - done;
		if (lwc_on_behalf(LWC_USE_MEMORY, SYS_write, arguments) != (long)part)
			return -1;
		length = read(links->from_memory, out + done, part);
		if (length != (ssize_t)part)
			return -1;
		if (memchr(out + done, '\0', part) != NULL)
			return 0;
		done += part;
	}
	errno = ENAMETOOLONG;
	return -1;
}

/* ------------------------------------------------- across the two descriptor tables */

/* Calls recvmsg(2) or sendmsg(2) on the session's end of the mover, with our memory. */
static int
move(int number, struct msghdr *header)
{
	const uint64_t arguments[LWC_ARGUMENTS] = {SHAI_FD_DELIVERY, (uint64_t)(uintptr_t)header};

	return lwc_on_behalf(LWC_USE_FILES, number, arguments) == 1 ? 0 : -1;
}

union one_descriptor {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Passes a descriptor to the session. Returns its number there, or -1 with errno. */
static int
give(const struct context_links *links, int descriptor, bool close_on_exec)
{
	char byte = 0;
	struct iovec part = {&byte, 1};
	union one_descriptor control;
	struct msghdr header = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes)};
	uint64_t flag[LWC_ARGUMENTS] = {0, F_SETFD, close_on_exec ? FD_CLOEXEC : 0};
	int number;

	if (shai_packet_send(links->mover, &part, 1, &descriptor, 1) != 0)
		return -1;
	if (move(SYS_recvmsg, &header) != 0)
		return -1;
	if (header.msg_controllen < CMSG_LEN(sizeof(int))) {
		errno = EMFILE;
		return -1;
	}
	memcpy(&number, CMSG_DATA(&control.header), sizeof(number));
	flag[0] = (uint64_t)number;
	(void)lwc_on_behalf(LWC_USE_FILES, SYS_fcntl, flag);
	return number;
}

/* Copies a descriptor of the session. Returns the copy, or -1 with errno. */
static int
take(const struct context_links *links, int number)
{
	char byte = 0;
	struct iovec part = {&byte, 1};
	union one_descriptor control;
	struct msghdr header = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = CMSG_SPACE(sizeof(int))};
	int descriptors[SHAI_BATCH_MAX];
	struct shai_packet packet = {.buffer = &byte, .size = 1, .descriptor = descriptors};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &number, sizeof(number));
	if (move(SYS_sendmsg, &header) != 0)
		return -1;
	if (shai_packet_receive(links->mover, &packet) != 1 || packet.descriptor_count != 1) {
		shai_packet_close(descriptors, packet.descriptor_count);
		errno = EBADF;
		return -1;
	}
	return descriptors[0];
}

/* ---------------------------------------------------------- the calls themselves */

static enum stub_outcome
put_result(struct lwc_message *answer, long result)
{
	answer->argument = (uint64_t)result;
	answer->error = result < 0 ? errno : 0;
	return STUB_ANSWER;
}

/* Handles a send(2) to the monitor. The answers wait in the mailbox afterwards. */
static enum stub_outcome
exchange(struct stub *stub, struct context_links *links, const struct lwc_event *event,
    struct lwc_message *answer)
{
	const uint64_t arguments[LWC_ARGUMENTS] = {(uint64_t)links->session_end,
	    event->arguments[1], event->arguments[2], MSG_NOSIGNAL | MSG_DONTWAIT};
	enum stub_outcome outcome;
	long length;

	if (links->broken) {
		errno = EPIPE;
		return put_result(answer, -1);
	}
	length = lwc_on_behalf(LWC_USE_MEMORY, SYS_sendto, arguments);
	if (length < 0 || stub_receive(links->mailbox, &request) != 1)
		return put_result(answer, -1);
	outcome = stub_handle(stub, &request, &reply, &second);
	stub_discard(&request);
	if (outcome == STUB_ANSWER && stub_send(links->mailbox, &reply) != 0)
		outcome = STUB_BROKEN;
	if (outcome == STUB_ANSWER && second.length != 0 && stub_send(links->mailbox, &second) != 0)
		outcome = STUB_BROKEN;
	if (outcome == STUB_BROKEN) {
		(void)shutdown(links->mailbox, SHUT_RDWR);
		links->broken = true;
	}
	(void)put_result(answer, length);
	return outcome;
}

/* Opens the file that a call names. Returns a descriptor, or -1 with errno. */
static int
open_for(struct stub *stub, const struct context_links *links, const struct shai_refused_call *call)
{
	char named[SHAI_REQUEST_PATH_MAX], path[SHAI_REQUEST_PATH_MAX];
	int directory = -1, descriptor, error;
	enum shai_base base;

	if (read_text(links, call->path, named, sizeof(named)) != 0)
		return -1;
	base = shai_call_base(call->descriptor, named, path);
	if (base == SHAI_BASE_DIRECTORY)
		directory = take(links, call->descriptor);
	if (base == SHAI_BASE_OUTSIDE || (base == SHAI_BASE_DIRECTORY && directory < 0)) {
		errno = EACCES;
		return -1;
	}
	descriptor = stub_open(stub, directory, path, call->flags, call->mode);
	error = errno;
	shai_packet_close(&directory, 1);
	errno = error;
	return descriptor;
}

static long
finish(const struct context_links *links, const struct shai_refused_call *call, int descriptor)
{
	const uint64_t status[LWC_ARGUMENTS] = {(uint64_t)descriptor, call->result};
	long result;
	int error;

	if (descriptor < 0)
		return -1;
	if (call->kind == SHAI_CALL_OPEN)
		result = give(links, descriptor, (call->flags & O_CLOEXEC) != 0);
	else if (call->kind == SHAI_CALL_STATUS)
		result = lwc_on_behalf(LWC_USE_MEMORY, SYS_fstat, status);
	else
		result = shai_access_descriptor(descriptor, call->mode);
	error = errno;
	(void)close(descriptor);
	errno = error;
	return result;
}

/*
 * Repeats the write, from the session's memory, to the descriptor that may be written
 * to.
 */
static long
write_checked(struct stub *stub, const struct lwc_event *event)
{
	uint64_t arguments[LWC_ARGUMENTS];
	int descriptor = stub_may_write(stub, (int)event->arguments[0]);

	if (descriptor < 0)
		return -1;
	memcpy(arguments, event->arguments, sizeof(arguments));
	arguments[0] = (uint64_t)descriptor;
	return lwc_on_behalf(LWC_USE_MEMORY, event->call, arguments);
}

enum stub_outcome
redirected_answer(struct stub *stub, struct context_links *links, const struct lwc_event *event,
    struct lwc_message *answer)
{
	struct shai_refused_call call;

	*answer = (struct lwc_message){.error = event->error};
	if (stub_ended(stub))
		return STUB_OVER;
	if (event->call == SYS_sendto && (int)event->arguments[0] == SHAI_FD_MONITOR)
		return exchange(stub, links, event, answer);
	if (!shai_refused_call(event->call, event->arguments, &call))
		return STUB_ANSWER;
	if (call.kind == SHAI_CALL_WRITE)
		return put_result(answer, write_checked(stub, event));
	return put_result(answer, finish(links, &call, open_for(stub, links, &call)));
}

/*
 * Removes the records that are left. Without a buffer for them, the kernel closes
 * their descriptors.
 */
static void
empty(int socket)
{
	while (recv(socket, request.bytes, sizeof(request.bytes), MSG_DONTWAIT) > 0)
		continue;
}

void
redirected_drain(const struct context_links *links)
{
	empty(links->mailbox);
	empty(links->session_end);
	empty(links->mover);
	explicit_bzero(&request, sizeof(request));
	explicit_bzero(&reply, sizeof(reply));
	explicit_bzero(&second, sizeof(second));
}
