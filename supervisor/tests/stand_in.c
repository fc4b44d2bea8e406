/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stands in for the launcher and for the task that it becomes: installs a filter whose
 * notifications the supervisor gets, and forks workers that obey their clients.
 */
#include "stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "packets.h"
#include "shai_wire.h"

#define PLAN SHAI_FD_RESERVED_END
#define STATUS (PLAN + 1)
#define CONTROL (PLAN + 2)

static void
check(int condition, const char *what)
{
	if (!condition) {
		(void)dprintf(STATUS, "stand-in: %s: %m", what);
		_exit(99);
	}
}

static int
install_filter(void)
{
#define ASK(number)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                       \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
	struct sock_filter program[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    ASK(SYS_clone),
	    ASK(SYS_accept4),
	    ASK(SYS_getppid),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};

	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
}

static void
read_all(int file, void *out, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t length = read(file, (char *)out + done, size - done);

		if (length <= 0)
			_exit(0); /* the client has gone */
		done += (size_t)length;
	}
}

static void
report_result(int client, int value, const void *bytes, size_t size)
{
	struct report report = {
	    .size = (uint32_t)size, .descriptors = RESULT, .value = value, .error = errno};

	(void)send(client, &report, sizeof(report), MSG_NOSIGNAL | MSG_MORE);
	(void)send(client, bytes, size, MSG_NOSIGNAL);
}

static void
read_file(int client, const struct frame *frame, const char *place)
{
	static char text[4096];
	int file = place[0] == '\0' ? frame->argument : openat(frame->argument, place, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text));

	report_result(client, (int)length, text, length > 0 ? (size_t)length : 0);
}

static void
obey(int client, const struct frame *frame, const char *payload)
{
	struct descriptors own = {.number = {client}, .count = 1};

	errno = 0;
	switch ((enum order)frame->order) {
	case SEND:
		(void)packet_send(SHAI_FD_MONITOR, payload, frame->size, NULL);
		return;
	case SEND_FILE:
		(void)packet_send(SHAI_FD_MONITOR, payload, frame->size, &own);
		return;
	case READ:
		read_file(client, frame, payload);
		return;
	case WRITE:
		report_result(client, (int)write(frame->argument, payload, frame->size), NULL, 0);
		return;
	case COLD_CALL:
		report_result(client, (int)syscall(SYS_getppid), NULL, 0);
		return;
	case ACCEPT_AGAIN:
		report_result(
		    client, (int)syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0), NULL, 0);
		return;
	case FORK:
		report_result(client,
		    (int)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0), NULL, 0);
		return;
	case EXIT:
		_exit(frame->argument);
	case CRASH:
		(void)raise(SIGSEGV);
	}
}

static void
pass_on(int client)
{
	static char record[SHAI_WIRE_MAX];
	struct descriptors received;
	ssize_t length = packet_receive(SHAI_FD_MONITOR, record, sizeof(record), &received);
	struct report report = {.size = (uint32_t)length, .descriptors = (uint32_t)received.count};

	if (length <= 0)
		_exit(0);
	report.value = received.count > 0 ? received.number[0] : -1;
	(void)send(client, &report, sizeof(report), MSG_NOSIGNAL | MSG_MORE);
	(void)send(client, record, (size_t)length, MSG_NOSIGNAL);
}

static _Noreturn void
work(enum scenario scenario)
{
	static char payload[FRAME_MAX];
	int client;

	if (scenario == WORKERS_EXIT)
		_exit(5);
	client = (int)syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0);
	if (client < 0)
		_exit(6);
	for (;;) {
		struct pollfd ready[2] = {
		    {.fd = SHAI_FD_MONITOR, .events = POLLIN}, {.fd = client, .events = POLLIN}};

		if (poll(ready, 2, -1) < 0)
			_exit(7);
		if (ready[0].revents != 0)
			pass_on(client);
		if (ready[1].revents != 0) {
			struct frame frame;

			read_all(client, &frame, sizeof(frame));
			read_all(client, payload, frame.size);
			payload[frame.size] = '\0';
			obey(client, &frame, payload);
		}
	}
}

int
main(void)
{
	struct descriptors listener = {.count = 1};
	char scenario = 0;
	unsigned long flags = CLONE_PARENT | SIGCHLD;

	check(pread(PLAN, &scenario, 1, 0) == 1, "read the plan");
	if (scenario == EXITS)
		_exit(3);
	listener.number[0] = install_filter();
	check(listener.number[0] >= 0, "install the filter");
	check(packet_send(CONTROL, "listener", 8, &listener) == 0, "send the listener");
	(void)close_range(
	    scenario == HOLDS_A_FILE ? SHAI_FD_RESERVED_END + 1 : SHAI_FD_RESERVED_END, ~0u, 0);
	if (scenario == FORKS_CHILDREN)
		flags = SIGCHLD;
	check(write(STDOUT_FILENO, "zygote\n", 7) == 7, "print to standard output");
	check(write(STDERR_FILENO, "zygote\n", 7) == 7, "print to standard error");
	for (;;) {
		long child = syscall(SYS_clone, flags, NULL, NULL, NULL, 0);

		if (child == 0)
			work((enum scenario)scenario);
		if (child < 0 && errno != EINTR && errno != EAGAIN)
			_exit(8); /* the monitor has refused */
	}
}
