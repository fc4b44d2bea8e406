/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_descriptors.h"
#include "packet.h"

#define PATIENCE 60000 /* milliseconds; an emulated machine is slow */

static uint8_t buffer[SHAI_WIRE_MAX];

/* --------------------------------------------------------------- answers */

static void
answer(int reply, uint64_t sequence, int status, int descriptor)
{
	struct shai_answer record = {.status = status};
	struct iovec part = {&record, sizeof(record)};

	shai_encode_header(&record.header, SHAI_ANSWER, sizeof(record), sequence);
	(void)shai_packet_send(reply, &part, 1, &descriptor, descriptor >= 0);
}

/* Only "allowed" may be opened, and only for reading. */
static int
open_path(struct fake_sandbox *fake, const struct shai_request_path *asked)
{
	cap_rights_t rights;

	fake->paths++;
	if (strcmp(asked->path, fake_path(fake, "allowed")) != 0 ||
	    (asked->flags & O_ACCMODE) != O_RDONLY)
		return -1;
	(void)cap_rights_init(&rights, CAP_READ, CAP_SEEK, CAP_FSTAT, CAP_FCNTL);
	return fake_limited(open(asked->path, O_RDONLY | O_CLOEXEC), &rights);
}

static void
enable_traps(struct fake_sandbox *fake)
{
	int enable = PROC_TRAPCAP_CTL_ENABLE;

	EXPECT(procctl(P_PID, fake->task, PROC_TRAPCAP_CTL, &enable) == 0);
}

static void
serve_request(struct fake_sandbox *fake)
{
	int descriptors[SHAI_BATCH_MAX];
	struct shai_packet packet = {
	    .buffer = buffer, .size = sizeof(buffer), .descriptor = descriptors};
	ssize_t length = shai_packet_receive(fake->requests, &packet);
	struct shai_header *header = (void *)buffer;
	int descriptor = -1;

	if (length == 0)
		return;
	EXPECT(length >= (ssize_t)sizeof(*header) && packet.descriptor_count >= 1);
	switch (header->type) {
	case SHAI_REQUEST_SESSION:
		EXPECT(fake->waiting == -1);
		fake->waiting = descriptors[0];
		fake->waiting_sequence = header->sequence;
		descriptors[0] = -1;
		break;
	case SHAI_REQUEST_PATH:
		descriptor = open_path(fake, (const void *)buffer);
		answer(descriptors[0], header->sequence, descriptor < 0 ? EACCES : 0, descriptor);
		break;
	case SHAI_REQUEST_SEND:
		fake->sends++;
		if (fake->may_write && fake->reply < 0)
			descriptor = dup(fake->connection);
		answer(descriptors[0], header->sequence, fake->may_write ? 0 : EPERM, descriptor);
		break;
	case SHAI_REQUEST_WORKER:
		fake->workers++;
		answer(descriptors[0], header->sequence, 0, -1);
		break;
	default:
		EXPECT(header->type == SHAI_REQUEST_TRAPS);
		enable_traps(fake);
		answer(descriptors[0], header->sequence, 0, -1);
	}
	shai_packet_close(&descriptor, 1);
	shai_packet_close(descriptors, packet.descriptor_count);
}

static void
send_record(int socket, const void *record, size_t length, const int *descriptors, size_t count)
{
	struct iovec part = {(void *)(uintptr_t)record, length};

	EXPECT(shai_packet_send(socket, &part, 1, descriptors, count) == 0);
}

static void
answer_registration(struct fake_sandbox *fake, uint64_t sequence)
{
	struct {
		struct shai_registered head;
		struct shai_capability table[2];
	} record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_REGISTERED, sizeof(record), sequence);
	record.head.mode = fake->mode;
	record.head.capability_count = 2;
	record.table[0] = (struct shai_capability){
	    FAKE_PREFIX, SHAI_FD_CAPABILITY, SHAI_KIND_DIRECTORY, SHAI_RIGHT_READ};
	record.table[1] = (struct shai_capability){FAKE_WRITABLE_PREFIX, FAKE_WRITABLE,
	    SHAI_KIND_DIRECTORY, SHAI_RIGHT_READ | SHAI_RIGHT_WRITE};
	send_record(fake->task_monitor, &record, sizeof(record), NULL, 0);
}

/* Decisions that grant class 1, or nothing in mode dynamic. */
static int
make_decisions(const struct fake_sandbox *fake)
{
	struct shai_decisions decisions;
	int memory = shm_open(SHM_ANON, O_RDWR, 0600);

	memset(&decisions, 0, sizeof(decisions));
	decisions.count = fake->mode == SHAI_MODE_DYNAMIC ? 0 : 1;
	decisions.class[0] = 1;
	EXPECT(memory >= 0 && ftruncate(memory, sizeof(decisions)) == 0);
	EXPECT(write(memory, &decisions, sizeof(decisions)) == sizeof(decisions));
	return memory;
}

static void
answer_authentication(struct fake_sandbox *fake, uint64_t sequence)
{
	struct {
		struct shai_bound head;
		uint32_t class[2];
	} record;
	const size_t length = sizeof(record.head) + sizeof(record.class[0]);
	cap_rights_t rights;
	int descriptors[2];

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_BOUND, length, sequence);
	record.head.flags = SHAI_BOUND_VIEW | SHAI_BOUND_DECISIONS;
	record.head.class_count = 1;
	record.class[0] = 1;
	(void)snprintf(record.head.instance, sizeof(record.head.instance), "worker(alice)");
	(void)cap_rights_init(&rights, CAP_LOOKUP, CAP_READ, CAP_SEEK, CAP_FSTAT, CAP_FSTATFS,
	    CAP_MMAP_R, CAP_EVENT, CAP_FCNTL);
	descriptors[0] =
	    fake_limited(open(fake_path(fake, "view"), O_RDONLY | O_DIRECTORY), &rights);
	descriptors[1] = make_decisions(fake);
	send_record(fake->monitor, &record, length, descriptors, 2);
	shai_packet_close(descriptors, 2);
}

static void
answer_open(struct fake_sandbox *fake, const struct shai_open *asked)
{
	struct shai_opened record;

	fake->opens++;
	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.header, SHAI_OPENED, sizeof(record), asked->header.sequence);
	record.count = asked->count;
	for (uint32_t i = 0; i < asked->count; i++)
		record.status[i] = EACCES;
	send_record(fake->monitor, &record, sizeof(record), NULL, 0);
}

/* Serves the monitor's end of the zygote, or of the session. */
static void
serve_monitor(struct fake_sandbox *fake, int *socket)
{
	ssize_t length = recv(*socket, buffer, sizeof(buffer), 0);
	struct shai_header *header = (void *)buffer;

	if (length <= 0) {
		(void)close(*socket);
		*socket = -1;
		return;
	}
	EXPECT(length >= (ssize_t)sizeof(*header));
	switch (header->type) {
	case SHAI_AUTHENTICATE:
		answer_authentication(fake, header->sequence);
		break;
	case SHAI_OPEN:
		answer_open(fake, (const void *)buffer);
		break;
	case SHAI_RESET:
		fake->resets++;
		break;
	default:
		if (socket == &fake->task_monitor && header->type == SHAI_REGISTER) {
			answer_registration(fake, header->sequence);
			break;
		}
		/* As the monitor: what it does not know ends the connection. */
		(void)close(*socket);
		*socket = -1;
	}
}

/* Serves until something can be read from a descriptor. */
static void
serve_until(struct fake_sandbox *fake, int wanted)
{
	for (;;) {
		struct pollfd sources[] = {{fake->requests, POLLIN, 0},
		    {fake->task_monitor, POLLIN, 0}, {fake->monitor, POLLIN, 0},
		    {wanted, POLLIN, 0}};

		EXPECT(poll(sources, 4, PATIENCE) > 0);
		if (sources[0].revents != 0)
			serve_request(fake);
		if (sources[1].revents != 0)
			serve_monitor(fake, &fake->task_monitor);
		if (sources[2].revents != 0)
			serve_monitor(fake, &fake->monitor);
		if (sources[3].revents != 0 || (wanted == fake->requests && fake->waiting >= 0))
			return;
	}
}

int
fake_wait(struct fake_sandbox *fake)
{
	int status;

	/* The task's end is the end of its monitor's socket. */
	while (fake->task_monitor >= 0)
		serve_until(fake, fake->task_monitor);
	EXPECT(waitpid(fake->task, &status, 0) == fake->task);
	return status;
}

/* --------------------------------------------------------------- sessions */

static void
send_placed(struct fake_sandbox *fake, const int *descriptors, int connection)
{
	struct shai_placed record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.header, SHAI_PLACED, sizeof(record), fake->waiting_sequence);
	record.connection = connection;
	record.count = 3;
	record.number[0] = SHAI_FD_MONITOR;
	record.number[1] = SHAI_FD_CHANNEL;
	record.number[2] = connection;
	send_record(fake->reply, &record, sizeof(record), descriptors, 3);
}

static void
send_connected(struct fake_sandbox *fake)
{
	struct shai_connected record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.header, SHAI_CONNECTED, sizeof(record), 0);
	(void)snprintf(record.peer, sizeof(record.peer), "127.0.1.1");
	record.mode = fake->mode;
	send_record(fake->monitor, &record, sizeof(record), NULL, 0);
}

void
fake_user(struct fake_sandbox *fake)
{
	int monitor[2], channel[2], connection[2];

	while (fake->waiting < 0)
		serve_until(fake, fake->requests);
	fake->reply = fake->waiting;
	fake->waiting = -1;
	shai_packet_close(&fake->client, 1);
	shai_packet_close(&fake->connection, 1);
	fake_pair(SOCK_SEQPACKET, monitor);
	fake_pair(SOCK_SEQPACKET, channel);
	fake_pair(SOCK_STREAM, connection);
	fake->monitor = monitor[0];
	fake->channel = channel[0];
	fake->client = connection[0];
	fake->connection = -1;
	send_connected(fake);
	send_placed(fake, (int[]){monitor[1], channel[1], connection[1]},
	    fake->mode == SHAI_MODE_DYNAMIC ? SHAI_FD_CONNECTION_CHECKED : SHAI_FD_CONNECTION);
	EXPECT(close(monitor[1]) == 0 && close(channel[1]) == 0 && close(connection[1]) == 0);
}

const char *
fake_say(struct fake_sandbox *fake, const char *line)
{
	static char text[4096];
	size_t length = 0;

	(void)snprintf(text, sizeof(text), "%s\n", line);
	if (send(fake->client, text, strlen(text), MSG_NOSIGNAL) < 0)
		return "";
	do {
		serve_until(fake, fake->client);
		if (read(fake->client, text + length, 1) != 1)
			return "";
	} while (text[length++] != '\n' && length < sizeof(text));
	text[length - 1] = '\0';
	return text;
}

void
fake_end_session(struct fake_sandbox *fake)
{
	EXPECT(shutdown(fake->reply, SHUT_RDWR) == 0);
}

void
fake_session_over(struct fake_sandbox *fake, bool killed)
{
	char byte;

	serve_until(fake, fake->reply);
	EXPECT(recv(fake->reply, &byte, 1, 0) == 0);
	/* A process that is killed runs no more, but the kernel closes in its own order. */
	if (killed)
		serve_until(fake, fake->channel);
	EXPECT(recv(fake->channel, &byte, 1, MSG_DONTWAIT) == 0);
	while (fake->monitor >= 0)
		serve_monitor(fake, &fake->monitor);
	shai_packet_close((int[]){fake->reply, fake->channel}, 2);
	fake->reply = fake->channel = -1;
}

void
fake_channel_send(struct fake_sandbox *fake, const void *bytes, size_t length)
{
	EXPECT(send(fake->channel, bytes, length, MSG_NOSIGNAL) == (ssize_t)length);
}
