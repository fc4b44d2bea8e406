/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/procctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "fake_descriptors.h"
#include "packet.h"
#include "shai.h"

#define OWN_NUMBERS 300 /* first number of the sandbox's own descriptors */
#define NOBODY 65534
#define DOCUMENTS 6 /* conduit i is in class 1 if it is odd, else in class 2 */

int
fake_aside(int descriptor)
{
	int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, OWN_NUMBERS);

	EXPECT(moved >= 0 && close(descriptor) == 0);
	return moved;
}

void
fake_pair(int type, int ends[2])
{
	int size = 2 * SHAI_WIRE_MAX;

	EXPECT(socketpair(AF_UNIX, type, 0, ends) == 0);
	for (int i = 0; i < 2; i++) {
		ends[i] = fake_aside(ends[i]);
		(void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		(void)setsockopt(ends[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	}
}

int
fake_limited(int descriptor, const cap_rights_t *rights)
{
	EXPECT(descriptor >= 0 && cap_rights_limit(descriptor, rights) == 0);
	return descriptor;
}

/* ------------------------------------------------------------------ files */

const char *
fake_path(const struct fake_sandbox *fake, const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", fake->directory, name);
	return path;
}

static void
write_file(const struct fake_sandbox *fake, const char *name, const void *bytes, size_t length)
{
	int file = open(fake_path(fake, name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	EXPECT(file >= 0 && write(file, bytes, length) == (ssize_t)length && close(file) == 0);
}

static void
make_files(struct fake_sandbox *fake)
{
	static const char *const folders[] = {
	    "", "data", "view", "view/1", "view/1/0", "view/2", "view/2/0"};
	uint32_t classes[DOCUMENTS + 1] = {0};

	(void)snprintf(fake->directory, sizeof(fake->directory), "/tmp/shai-%d", (int)getpid());
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		EXPECT(mkdir(fake_path(fake, folders[i]), 0755) == 0);
	for (uint32_t i = 1; i <= DOCUMENTS; i++) {
		char name[32], text[32];

		classes[i] = i % 2 == 1 ? 1 : 2;
		(void)snprintf(name, sizeof(name), "view/%u/0/%u", classes[i], i);
		(void)snprintf(text, sizeof(text), "document %u\n", i);
		write_file(fake, name, text, strlen(text));
	}
	EXPECT(chmod(fake_path(fake, "data"), 0777) == 0);
	write_file(fake, "classes", classes, sizeof(classes));
	write_file(fake, "allowed", "allowed\n", 8);
	write_file(fake, "secret", "secret\n", 7);
}

/* -------------------------------------------------------------- the task */

static void
place(int descriptor, int number)
{
	EXPECT(dup2(descriptor, number) == number);
}

static void
place_descriptors(struct fake_sandbox *fake, int requests, int monitor)
{
	cap_rights_t none, rights;
	int filler = fake_aside(open("/dev/null", O_RDWR));

	(void)cap_rights_init(&none);
	for (int number = SHAI_FD_MONITOR; number < SHAI_FD_RESERVED_END; number++) {
		place(filler, number);
		(void)fake_limited(number, &none);
	}
	place(monitor, SHAI_FD_MONITOR);
	place(requests, SHAI_FD_REQUESTS);
	place(fake_aside(open(fake_path(fake, "classes"), O_RDONLY)), SHAI_FD_CLASSES);
	place(fake_aside(open(fake_path(fake, "data"), O_RDONLY | O_DIRECTORY)), FAKE_WRITABLE);
	(void)cap_rights_init(&rights, CAP_LOOKUP, CAP_READ, CAP_WRITE, CAP_SEEK, CAP_CREATE,
	    CAP_FSTAT, CAP_FCNTL, CAP_FTRUNCATE);
	(void)fake_limited(FAKE_WRITABLE, &rights);
	/* A main task's own checked number: a pipe without the right to write. */
	place(fake->connection, SHAI_FD_CONNECTION_CHECKED);
	(void)cap_rights_init(&rights, CAP_EVENT);
	(void)fake_limited(SHAI_FD_CONNECTION_CHECKED, &rights);
}

static void
close_own(void)
{
	(void)close_range(SHAI_FD_RESERVED_END, 1023, 0);
}

static void
run_task(struct fake_sandbox *fake, fake_task *task, int requests, int monitor)
{
	place_descriptors(fake, requests, monitor);
	close_own();
	EXPECT(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
	EXPECT(cap_enter() == 0);
	EXPECT(shai_backend_prepare() == 0);
	EXPECT(shai_register("worker", 0) == 0);
	exit(task());
}

void
fake_start(struct fake_sandbox *fake, fake_task *task, enum shai_mode mode)
{
	int requests[2], monitor[2], connection[2];

	*fake = (struct fake_sandbox){
	    .mode = mode, .waiting = -1, .reply = -1, .monitor = -1, .client = -1, .channel = -1};
	make_files(fake);
	fake_pair(SOCK_SEQPACKET, requests);
	fake_pair(SOCK_SEQPACKET, monitor);
	fake_pair(SOCK_STREAM, connection);
	fake->requests = requests[0];
	fake->task_monitor = monitor[0];
	fake->client = connection[0];
	fake->connection = connection[1];
	EXPECT(procctl(P_PID, getpid(), PROC_REAP_ACQUIRE, NULL) == 0 || errno == EBUSY);
	(void)fflush(NULL);
	fake->task = fork();
	EXPECT(fake->task >= 0);
	if (fake->task == 0)
		run_task(fake, task, requests[1], monitor[1]);
	EXPECT(close(requests[1]) == 0 && close(monitor[1]) == 0);
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

void
fake_stop(struct fake_sandbox *fake)
{
	struct procctl_reaper_kill all = {.rk_sig = SIGKILL};
	int numbers[] = {fake->requests, fake->task_monitor, fake->waiting, fake->reply,
	    fake->monitor, fake->client, fake->channel, fake->connection};

	(void)procctl(P_PID, getpid(), PROC_REAP_KILL, &all);
	while (wait(NULL) > 0 || errno == EINTR)
		continue;
	shai_packet_close(numbers, sizeof(numbers) / sizeof(numbers[0]));
	EXPECT(nftw(fake->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}
