/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The FreeBSD backend: the session's part of it, and the worker's fork. The launcher
 * has confined a process that is in capability mode. In any other process (mode
 * baseline) everything is done natively.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capsicum.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "exchange.h"
#include "failure.h"
#include "packet.h"
#include "requests.h"
#include "stub_transports.h"
#include "trap.h"
#include "view.h"
#include "workers.h"

/* Directories of classes, kept open by class. A later one replaces an earlier one. */
#define CLASS_DIRECTORIES 64

static struct {
	uint32_t class;
	int descriptor;
} class_directory[CLASS_DIRECTORIES];

static bool has_stub; /* this process or context is a session */

int
shai_backend_prepare(void)
{
	return cap_sandboxed() && shai_packet_socket(SHAI_FD_REQUESTS) ? shai_trap_install() : 0;
}

/* Makes this process a worker. Returns only in a session. */
static void
become_worker(void)
{
	static struct stub stub;

	shai_workers_forget();
	shai_trap_ask(SHAI_TRAP_ASKS_NOBODY);
	if (stub_begin(&stub) != 0)
		stub_give_up("worker that the monitor refuses, or that cannot begin");
	if (stub_has_contexts())
		stub_run_contexts(&stub);
	else
		stub_run_processes(&stub);
	has_stub = true;
}

pid_t
shai_backend_fork_worker(void)
{
	pid_t child = fork();

	if (child == 0 && cap_sandboxed())
		become_worker();
	if (child > 0 && cap_sandboxed() && shai_workers_add(child) != 0)
		return -1;
	return child;
}

/* ------------------------------------------------------ asking the stub */

/* Sends a record and receives the answer. Returns its status, or -1 after shai_fail. */
static int
exchange(const void *record, size_t length, uint64_t sequence, struct shai_message *message,
    struct shai_answer *answer, struct shai_bytes *extra)
{
	const char *problem;

	if (shai_exchange_send(record, length) != 0 || shai_exchange_receive(message) != 0)
		return -1;
	problem = shai_decode_answer(message->bytes, sequence, answer, extra);
	if (problem == NULL && answer->status != 0 && message->descriptor_count != 0)
		problem = "with a refusal and a descriptor";
	if (problem != NULL)
		return shai_exchange_refuse(message, "SHAI_ANSWER", problem);
	return answer->status;
}

static int
put_in_place(const struct shai_placed *placed, const struct shai_message *message)
{
	for (size_t i = 0; i < message->descriptor_count; i++)
		if (dup2(message->descriptor[i], placed->number[i]) < 0)
			return shai_fail(errno, "accept: cannot place descriptor %d: %s",
			    placed->number[i], strerror(errno));
	return placed->connection;
}

int
shai_backend_accept(void)
{
	struct shai_header request;
	struct shai_message message;
	struct shai_placed placed;
	const char *problem;
	int connection;

	if (!has_stub)
		return shai_fail(EOPNOTSUPP, "accept: not in a worker of shai_fork_worker");
	shai_encode_header(&request, SHAI_STUB_ACCEPT, sizeof(request), shai_exchange_sequence());
	if (shai_exchange_send(&request, sizeof(request)) != 0 ||
	    shai_exchange_receive(&message) != 0)
		return -1;
	problem = shai_decode_placed(message.bytes, request.sequence, &placed);
	if (problem == NULL && placed.count != message.descriptor_count)
		problem = "descriptors that do not match its numbers";
	if (problem != NULL)
		return shai_exchange_refuse(&message, "SHAI_PLACED", problem);
	if (placed.status != 0)
		return shai_fail(placed.status, "accept: %s", strerror(placed.status));
	connection = put_in_place(&placed, &message);
	shai_message_discard(&message);
	return connection;
}

bool
shai_backend_holds_directories(void)
{
	return false;
}

void
shai_backend_end_session(int connection)
{
	(void)connection; /* closed with the session's descriptors */
	while (has_stub)
		(void)pause(); /* until the stub ends this session */
}

int
shai_backend_channel(enum shai_mode mode)
{
	(void)mode;
	return SHAI_FD_CHANNEL;
}

int
shai_backend_decisions(void)
{
	return -1;
}

ssize_t
shai_backend_receive_transfer(int from, uint32_t query, void *buffer, size_t size)
{
	struct shai_header request;
	struct shai_message message;
	struct shai_answer answer;
	struct shai_bytes transfer;
	int status;

	(void)from, (void)query; /* the stub reads the channel, and takes any record */
	shai_encode_header(&request, SHAI_STUB_TRANSFER, sizeof(request), shai_exchange_sequence());
	status =
	    exchange(&request, sizeof(request), request.sequence, &message, &answer, &transfer);
	if (status < 0)
		return -1;
	shai_message_discard(&message);
	if (status == 0 && transfer.length > size)
		status = EMSGSIZE;
	if (status != 0) {
		errno = status;
		return -1;
	}
	memcpy(buffer, transfer.start, transfer.length);
	return (ssize_t)transfer.length;
}

/* ------------------------------------------------------------ the view */

/* Asks for a class's directory. Returns a descriptor, or -1 with errno. */
static int
ask_directory(uint32_t class)
{
	struct shai_stub_directory request = {.class = class};
	struct shai_message message;
	struct shai_answer answer;
	struct shai_bytes extra;
	int status, descriptor;

	shai_encode_header(
	    &request.header, SHAI_STUB_DIRECTORY, sizeof(request), shai_exchange_sequence());
	status =
	    exchange(&request, sizeof(request), request.header.sequence, &message, &answer, &extra);
	if (status < 0)
		return -1;
	if (status != 0 || message.descriptor_count != 1) {
		shai_message_discard(&message);
		errno = status != 0 ? status : EPROTO;
		return -1;
	}
	descriptor = shai_message_take(&message, 0);
	return descriptor;
}

static int
directory_of(uint32_t class)
{
	size_t place = class % CLASS_DIRECTORIES;
	int descriptor;

	if (class_directory[place].class == class)
		return class_directory[place].descriptor;
	descriptor = ask_directory(class);
	if (descriptor < 0)
		return -1;
	if (class_directory[place].class != 0)
		(void)close(class_directory[place].descriptor);
	class_directory[place].class = class;
	class_directory[place].descriptor = descriptor;
	return descriptor;
}

/* The kernel's refusal was a signal already, whose handler has asked (trap.h). */
int
shai_backend_ask_open(int directory, const char *name, int flags, mode_t mode)
{
	(void)directory, (void)name, (void)flags, (void)mode;
	errno = EACCES;
	return -1;
}

int
shai_backend_open_in_view(int directory, const char *name)
{
	const char *rest = name;
	uint32_t class;

	if (has_stub) {
		if (!shai_view_class(name, &class, &rest)) {
			errno = EACCES;
			return -1;
		}
		directory = directory_of(class);
	}
	if (directory < 0)
		return -1;
	return (int)syscall(SYS_openat, directory, rest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

int
shai_backend_random(void *buffer, size_t size)
{
	return getentropy(buffer, size);
}
