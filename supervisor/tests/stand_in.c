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
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "packets.h"
#include "rollback.h"
#include "shai_gate.h"
#include "shai_wire.h"

#define PLAN SHAI_FD_RESERVED_END
#define STATUS (PLAN + 1)
#define CONTROL (PLAN + 2)

static bool returning; /* the session is over */

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
	    ASK(SYS_seccomp),
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

/* Reports what the gate returns, and what is in its buffer then. */
static void
receive(int client, const char *payload)
{
	int64_t (*gate)(int, uint32_t) =
	    (int64_t(*)(int, uint32_t))(SHAI_ROLLBACK_CODE + SHAI_GATE);
	uint32_t query;
	int64_t length;

	memcpy(&query, payload, sizeof(query));
	length = gate(SHAI_FD_CHANNEL, query);
	report_result(client, (int)length, (const void *)SHAI_GATE_BUFFER, SHAI_GATE_BUFFER_SIZE);
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
	case RECEIVE:
		receive(client, payload);
		return;
	case RETURN:
		returning = true;
		if (frame->argument != 0)
			(void)shutdown(client, SHUT_RDWR);
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

/* Its accept4 has the place of that of the roll-back code, which it stands in for. */
#define ACCEPT (SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_ACCEPTED - 2)

static void
map(uint64_t address, size_t size, int protection, int flags, int file)
{
	if (mmap((void *)address, size, protection, flags | MAP_FIXED_NOREPLACE, file, 0) ==
	    MAP_FAILED)
		_exit(11);
}

/* The supervisor gives the grant; the class table is as the harness makes it. */
static void
prepare_gate(void *page)
{
	uint32_t classes[10] = {0, 1, 1, 1, 1, 1, 1, 2, 1, 1};
	int table = memfd_create("classes", 0);

	memcpy(page, rollback_code, SHAI_ROLLBACK_CODE_SIZE);
	if (write(table, classes, sizeof(classes)) != sizeof(classes) ||
	    syscall(SYS_accept4, SHAI_FD_GRANT, NULL, NULL, 0) != SHAI_FD_GRANT)
		_exit(10);
	map(SHAI_GATE_BUFFER, SHAI_GATE_BUFFER_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map(SHAI_GATE_GRANT, SHAI_GATE_GRANT_SIZE, PROT_READ, MAP_SHARED, SHAI_FD_GRANT);
	map(SHAI_GATE_CLASSES, SHAI_GATE_CLASSES_SIZE, PROT_READ, MAP_SHARED, table);
}

/* Asks to be sealed, with a filter that permits everything. Returns whether that is done. */
static bool
seal(bool reads)
{
	static const unsigned char code[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {.len = 1, .filter = all};
	void *page = mmap((void *)SHAI_ROLLBACK_CODE, SHAI_ROLLBACK_CODE_SIZE,
	    PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
	    -1, 0);

	if (page == MAP_FAILED)
		_exit(9);
	if (reads)
		prepare_gate(page);
	memcpy((void *)ACCEPT, code, sizeof(code));
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

/* An error of accept4 only rolls back, of which there is nothing here. */
static int
accept_sealed(void)
{
	register long flags __asm__("r10") = SOCK_CLOEXEC;
	long result;

	do {
		result = SYS_accept4;
		__asm__ volatile(
		    "sub $128, %%rsp; call *%[accept]; add $128, %%rsp"
		    : "+a"(result)
		    : "D"(SHAI_FD_LISTEN), "S"(0), "d"(0), "r"(flags), [accept] "r"(ACCEPT)
		    : "rcx", "r11", "memory", "cc");
	} while (result == -EAGAIN);
	return (int)result;
}

static void
serve(int client)
{
	static char payload[FRAME_MAX];

	returning = false;
	while (!returning) {
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

static _Noreturn void
work(enum scenario scenario)
{
	bool sealed;
	int client;

	if (scenario == WORKERS_EXIT)
		_exit(5);
	sealed = (scenario == SEALS || scenario == READS) && seal(scenario == READS);
	do {
		client = sealed ? accept_sealed()
				: (int)syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0);
		if (client < 0)
			_exit(6);
		serve(client);
	} while (sealed);
	_exit(0);
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
