/* SPDX-License-Identifier: BSD-2-Clause */
#include "raising_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "shai.h"

#ifdef __linux__

#include <linux/openat2.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

int
open_in_view(const char *path)
{
	struct open_how how = {.flags = O_RDONLY};

	return (int)syscall(SYS_openat2, SHAI_FD_CAPABILITY, path, &how, sizeof(how));
}

/* libshai would ask if it made the call. */
int
open_natively(int directory, const char *path, int flags)
{
	return (int)syscall(SYS_openat, directory, path, flags, 0600);
}

long
give_page(int pipe, void *page, size_t size)
{
	struct iovec part = {page, size};

	return vmsplice(pipe, &part, 1, 0);
}

int
cheat(const char *instance, const char *how)
{
	(void)instance, (void)how;
	errno = ENOSYS;
	return -1;
}

int
write_later(int descriptor)
{
	(void)descriptor;
	errno = ENOSYS;
	return -1;
}

int
finish_writing(void)
{
	errno = ENOSYS;
	return -1;
}

static pid_t child;

int
start_child(void)
{
	child = fork();
	if (child == 0)
		for (;;)
			(void)pause();
	return child;
}

int
end_child(void)
{
	return kill(child, SIGKILL) == 0 ? waitpid(child, NULL, 0) : -1;
}

int
make_context(void)
{
	errno = ENOSYS;
	return -1;
}

#else

#include <aio.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/procdesc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysctl.h>

#include "lwc.h"
#include "shai_requests.h"

int
open_in_view(const char *path)
{
	return openat(SHAI_FD_CAPABILITY, path, O_RDONLY);
}

static void
nothing(int number)
{
	(void)number;
}

/*
 * libshai asks in the handler of the signal. System calls replace and restore it, since the
 * library of threads would not restore what it has not installed.
 */
int
open_natively(int directory, const char *path, int flags)
{
	struct sigaction unasked, asked;
	int opened, error;

	memset(&unasked, 0, sizeof(unasked));
	unasked.sa_handler = nothing;
	if (syscall(SYS_sigaction, SIGTRAP, &unasked, &asked) != 0)
		return -1;
	opened = openat(directory, path, flags, 0600);
	error = errno;
	(void)syscall(SYS_sigaction, SIGTRAP, &asked, NULL);
	errno = error;
	return opened;
}

long
give_page(int pipe, void *page, size_t size)
{
	(void)pipe, (void)page, (void)size;
	errno = ENOSYS;
	return -1;
}

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static bool
send_registration(const char *instance, int reply)
{
	struct shai_request_register request;
	union rights rights = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
				   .cmsg_level = SOL_SOCKET,
				   .cmsg_type = SCM_RIGHTS}};
	struct iovec part = {&request, sizeof(request)};
	struct msghdr message = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = rights.bytes,
	    .msg_controllen = sizeof(rights.bytes)};

	memset(&request, 0, sizeof(request));
	request.header =
	    (struct shai_header){SHAI_WIRE_VERSION, SHAI_REQUEST_REGISTER, sizeof(request), 1};
	request.record.header =
	    (struct shai_header){SHAI_WIRE_VERSION, SHAI_REGISTER, sizeof(request.record), 1};
	(void)snprintf(request.record.instance, sizeof(request.record.instance), "%s", instance);
	request.record.flags = SHAI_REGISTER_CLOSE;
	memcpy(CMSG_DATA(&rights.head), &reply, sizeof(int));
	return sendmsg(SHAI_FD_REQUESTS, &message, 0) == (ssize_t)sizeof(request);
}

/* Pretends to have placed a descriptor. */
static bool
pretend(int replies, const struct shai_place *place, int descriptor, const char *how)
{
	struct shai_answer answer = {.header = {SHAI_WIRE_VERSION, SHAI_ANSWER, sizeof(answer), 1}};

	if (strcmp(how, "more") == 0) {
		for (uint32_t i = 0; i < place->count; i++)
			(void)dup2(descriptor, place->number[i]);
		(void)dup(STDOUT_FILENO);
	}
	(void)close(descriptor);
	return send(replies, &answer, sizeof(answer), 0) == (ssize_t)sizeof(answer);
}

int
cheat(const char *instance, const char *how)
{
	static union {
		struct shai_header header;
		struct shai_place place;
		struct shai_answer answer;
	} record;
	union rights rights;
	struct iovec part = {&record, sizeof(record)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	int ends[2], descriptor;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 ||
	    (strcmp(how, "early") == 0 && send(ends[1], how, 1, 0) != 1) ||
	    !send_registration(instance, ends[1]))
		return -1;
	if (strcmp(how, "early") == 0)
		return 0; /* what was sent stays there */
	(void)close(ends[1]);
	for (;;) {
		message.msg_control = rights.bytes;
		message.msg_controllen = sizeof(rights.bytes);
		if (recvmsg(ends[0], &message, 0) <= 0)
			return -1;
		if (record.header.type != SHAI_PLACE)
			break;
		memcpy(&descriptor, CMSG_DATA(&rights.head), sizeof(int));
		if (!pretend(ends[0], &record.place, descriptor, how))
			return -1;
	}
	(void)close(ends[0]);
	errno = record.answer.status;
	return errno == 0 ? 0 : -1;
}

static struct aiocb later;

int
write_later(int descriptor)
{
	static char line[] = "a line\n";

	later.aio_fildes = descriptor;
	later.aio_buf = line;
	later.aio_nbytes = sizeof(line) - 1;
	return aio_write(&later);
}

int
finish_writing(void)
{
	const struct aiocb *list[] = {&later};

	while (aio_error(&later) == EINPROGRESS)
		(void)aio_suspend(list, 1, NULL);
	return (int)aio_return(&later);
}

static int child; /* a process descriptor: in capability mode a task cannot wait(2) */

int
start_child(void)
{
	pid_t forked = pdfork(&child, 0);

	if (forked == 0)
		for (;;)
			(void)pause();
	return forked;
}

int
end_child(void)
{
	struct pollfd ended = {.fd = child, .events = POLLHUP};

	if (pdkill(child, SIGKILL) != 0 || poll(&ended, 1, -1) != 1)
		return -1;
	return close(child);
}

int
make_context(void)
{
	static const struct lwc_spec spec = {
	    .version = LWC_VERSION, .source = LWC_SELF, .monitor = LWC_SELF};
	struct lwc_event event;
	int number;
	size_t size = sizeof(number);

	if (sysctlbyname("shai.syscall.lwc_create", &number, &size, NULL, 0) != 0 ||
	    syscall(number, &spec, &event) != 0)
		return -1;
	return event.descriptor;
}

#endif
