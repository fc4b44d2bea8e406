/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_monitor.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "records.h"

#define FAKE_OWN_NUMBERS 200 /* first descriptor number for the fake's own ends */

/* Moves a descriptor to a fixed number. */
static void
place(int descriptor, int number)
{
	if (descriptor == number)
		return;
	EXPECT(dup2(descriptor, number) == number);
	EXPECT(close(descriptor) == 0);
}

static int
aside(int descriptor)
{
	int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, FAKE_OWN_NUMBERS);

	EXPECT(moved >= 0);
	EXPECT(close(descriptor) == 0);
	return moved;
}

static void
make_document(const char *directory, uint32_t conduit)
{
	char path[128];
	FILE *stream;

	(void)snprintf(path, sizeof(path), "%s/view/%u", directory, FAKE_CLASS(conduit));
	(void)mkdir(path, 0700);
	(void)snprintf(
	    path, sizeof(path), "%s/view/%u/%u", directory, FAKE_CLASS(conduit), conduit >> 10);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/view/%u/%u/%u", directory, FAKE_CLASS(conduit),
	    conduit >> 10, conduit);
	stream = fopen(path, "w");
	EXPECT(stream != NULL);
	(void)fprintf(stream, "document %u\n", conduit);
	EXPECT(fclose(stream) == 0);
}

static void
make_view(struct fake_monitor *fake)
{
	/* Some of all, for the tests fork a lot: the first, and both sides of a bucket's edge. */
	static const uint32_t conduits[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1023, 1024, 1100};
	uint32_t classes[FAKE_CONDUITS + 1] = {0};
	char path[64];
	int table;

	(void)snprintf(path, sizeof(path), "%s/view", fake->directory);
	EXPECT(mkdir(path, 0700) == 0);
	for (size_t i = 0; i < sizeof(conduits) / sizeof(conduits[0]); i++)
		make_document(fake->directory, conduits[i]);
	place(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), SHAI_FD_CAPABILITY);
	for (uint32_t i = 1; i <= FAKE_CONDUITS; i++)
		classes[i] = FAKE_CLASS(i);
	(void)snprintf(path, sizeof(path), "%s/classes", fake->directory);
	table = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	EXPECT(write(table, classes, sizeof(classes)) == (ssize_t)sizeof(classes));
	place(table, SHAI_FD_CLASSES);
}

static void
make_sockets(struct fake_monitor *fake)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int pair[2], listener;

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	fake->socket = aside(pair[1]);
	place(pair[0], SHAI_FD_MONITOR);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	fake->channel = aside(pair[1]);
	place(pair[0], SHAI_FD_CHANNEL);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	EXPECT(bind(listener, (struct sockaddr *)&address, size) == 0);
	EXPECT(listen(listener, 8) == 0);
	EXPECT(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	fake->listener_port = ntohs(address.sin_port);
	place(listener, SHAI_FD_LISTEN);
}

/* Fills the reserved numbers. */
static void
fake_start(struct fake_monitor *fake)
{
	fake->sequence = 1;
	/*
	 * Descriptors that the test was started with must not occupy the reserved
	 * numbers.
	 */
	EXPECT(close_range(3, FAKE_OWN_NUMBERS * 2, 0) == 0);
	for (int number = 3; number < SHAI_FD_CONNECTION; number++)
		EXPECT(open("/dev/null", O_PATH | O_CLOEXEC) == number);
	make_sockets(fake);
	make_view(fake);
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

void
fake_send(struct fake_monitor *fake, const void *record, size_t length, const int *descriptors,
    size_t count)
{
	union {
		struct cmsghdr aligned;
		char bytes[CMSG_SPACE(SHAI_DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = (void *)(uintptr_t)record, .iov_len = length};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	memset(&control, 0, sizeof(control));
	if (count > 0) {
		struct cmsghdr *rights;

		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
	}
	EXPECT(sendmsg(fake->socket, &header, MSG_NOSIGNAL) == (ssize_t)length);
	fake->sequence++;
}

size_t
fake_receive(struct fake_monitor *fake, void *record, size_t size)
{
	ssize_t length = recv(fake->socket, record, size, MSG_DONTWAIT);

	EXPECT(length >= 0);
	return (size_t)length;
}

struct shai_connected
fake_connected(enum shai_mode mode)
{
	struct shai_connected record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.header, SHAI_CONNECTED, sizeof(record), 0);
	for (size_t i = 0; i < sizeof(record.nonce); i++)
		record.nonce[i] = (uint8_t)(i * 7);
	(void)snprintf(record.peer, sizeof(record.peer), "127.0.1.1");
	(void)snprintf(record.region, sizeof(record.region), "de");
	(void)snprintf(record.service, sizeof(record.service), "127.0.0.1:8640");
	(void)snprintf(record.pipeline, sizeof(record.pipeline), "syse");
	record.mode = mode;
	record.slot = 3;
	return record;
}

struct fake_bound
fake_bound(struct fake_monitor *fake, uint32_t flags, uint32_t class_count)
{
	struct fake_bound record;

	memset(&record, 0, sizeof(record));
	shai_encode_header(&record.head.header, SHAI_BOUND,
	    sizeof(record.head) + class_count * sizeof(uint32_t), fake->sequence);
	record.head.flags = flags;
	record.head.class_count = class_count;
	(void)snprintf(record.head.instance, sizeof(record.head.instance), "worker(alice, de)");
	for (uint32_t i = 0; i < class_count; i++)
		record.classes[i] = i + 1;
	return record;
}

int
fake_connect(const struct fake_monitor *fake)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons((uint16_t)fake->listener_port)};
	int client = aside(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	EXPECT(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	return client;
}

void
fake_pass_on(struct fake_monitor *fake, const void *bytes, size_t length)
{
	struct {
		struct shai_header header;
		uint8_t bytes[4096];
	} record;

	EXPECT(length <= sizeof(record.bytes));
	shai_encode_header(&record.header, SHAI_TRANSFER, sizeof(record.header) + length, 0);
	memcpy(record.bytes, bytes, length);
	fake_send(fake, &record, record.header.size, NULL, 0);
	fake->sequence--; /* it was no answer */
}

void
fake_transfer(struct fake_monitor *fake, uint32_t query, const uint32_t *conduits, size_t count)
{
	struct shai_transfer transfer = {.query = query};

	memcpy(transfer.conduit, conduits, count * sizeof(conduits[0]));
	fake_pass_on(
	    fake, &transfer, offsetof(struct shai_transfer, conduit) + count * sizeof(conduits[0]));
}

int
fake_class_directory(const struct fake_monitor *fake, uint32_t class)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/view/%u", fake->directory, class);
	return aside(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void
fake_bind(const struct fake_monitor *fake, struct shai_session *session, enum shai_mode mode,
    uint32_t class_count)
{
	session->state = SHAI_SESSION_BOUND;
	session->mode = mode;
	session->channel = mode == SHAI_MODE_BASELINE ? SHAI_FD_CHANNEL : SHAI_FD_MONITOR;
	session->timeout_milliseconds = 5000;
	session->class_count = class_count;
	session->directory_count = class_count;
	for (uint32_t i = 0; i < class_count; i++) {
		session->classes[i] = i + 1;
		session->directories[i] = fake_class_directory(fake, i + 1);
	}
}

void
fake_queue_opened(struct fake_monitor *fake, uint32_t count, const int32_t *status)
{
	struct shai_opened answer;
	int descriptors[SHAI_BATCH_MAX];
	size_t granted = 0;

	memset(&answer, 0, sizeof(answer));
	shai_encode_header(&answer.header, SHAI_OPENED, sizeof(answer), fake->sequence);
	answer.count = count;
	memcpy(answer.status, status, count * sizeof(status[0]));
	for (uint32_t i = 0; i < count; i++)
		if (status[i] == 0)
			descriptors[granted++] = fake_descriptor();
	fake_send(fake, &answer, sizeof(answer), descriptors, granted);
	for (size_t i = 0; i < granted; i++)
		EXPECT(close(descriptors[i]) == 0);
}

void
fake_expect_document(const struct shai_document *document, uint32_t conduit)
{
	char wanted[32], text[32] = "";

	(void)snprintf(wanted, sizeof(wanted), "document %u\n", conduit);
	EXPECT(document->conduit == conduit);
	EXPECT(read(document->descriptor, text, sizeof(text) - 1) > 0);
	EXPECT(strcmp(text, wanted) == 0);
	EXPECT(fcntl(document->descriptor, F_GETFD) == FD_CLOEXEC);
}

int
fake_descriptor(void)
{
	return aside(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

size_t
fake_descriptor_count(void)
{
	size_t count = 0;

	for (int number = 0; number < 1024; number++)
		count += fcntl(number, F_GETFD) >= 0;
	return count;
}

int
fake_run(fake_scenario *scenario, size_t variant)
{
	struct fake_monitor fake;
	int status = -1;
	pid_t child;

	memset(&fake, 0, sizeof(fake));
	(void)snprintf(fake.directory, sizeof(fake.directory), "/tmp/shai-test-XXXXXX");
	EXPECT(mkdtemp(fake.directory) != NULL);
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)alarm(180); /* it hangs, on a busy machine, too */
		fake_start(&fake);
		scenario(&fake, variant);
		_exit(0);
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child);
	(void)nftw(fake.directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
