/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_monitor.h"
#include "shai_rollback.h"

#define STARTER (SHAI_FD_RESERVED_END - 1) /* the worker's socket to who starts it */

extern const uint8_t rollback_code[SHAI_ROLLBACK_CODE_SIZE];

/* ------------------------------------------------------------- the worker */

/* Asks for what users come by, and for what changes mappings. */
static int
install_filter(void)
{
	static const uint32_t asked[] = {SYS_accept4, SYS_seccomp, SYS_mmap, SYS_brk};
	struct sock_filter program[2 + sizeof(asked) / sizeof(asked[0]) * 2];
	struct sock_fprog head = {0, program};

	program[head.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		program[head.len++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, asked[i], 0, 1);
		program[head.len++] =
		    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	program[head.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	return (int)syscall(
	    SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &head);
}

static void
place_code(void)
{
	int file = memfd_create("roll-back", MFD_CLOEXEC);
	int table = memfd_create("classes", MFD_CLOEXEC);

	EXPECT(dup2(table, SHAI_FD_CLASSES) == SHAI_FD_CLASSES);
	EXPECT(write(file, rollback_code, SHAI_ROLLBACK_CODE_SIZE) == SHAI_ROLLBACK_CODE_SIZE);
	EXPECT(dup2(file, SHAI_FD_ROLLBACK) == SHAI_FD_ROLLBACK);
}

__attribute__((noreturn)) static void
become_worker(int starter, bool offered, void (*program)(void))
{
	int listener;
	char go;

	EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	EXPECT(dup2(starter, STARTER) == STARTER && close_range(3, STARTER - 1, 0) == 0);
	for (int number = 3; number < STARTER; number++)
		EXPECT(open("/dev/null", O_PATH | O_CLOEXEC) == number);
	if (offered)
		place_code();
	EXPECT(close_range(SHAI_FD_RESERVED_END, ~0u, 0) == 0);
	listener = install_filter();
	EXPECT(write(STARTER, &listener, sizeof(listener)) == sizeof(listener));
	EXPECT(read(STARTER, &go, 1) == 1 && close(listener) == 0);
	program();
	_exit(1);
}

/* --------------------------------------------------------- the supervisor */

void
fake_supervisor_start(struct fake_supervisor *fake, bool offered, void (*program)(void))
{
	int pair[2], number, process;

	*fake = (struct fake_supervisor){0};
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	fake->worker = fork();
	if (fake->worker == 0)
		become_worker(pair[1], offered, program);
	(void)close(pair[1]);
	EXPECT(read(pair[0], &number, sizeof(number)) == sizeof(number));
	process = (int)syscall(SYS_pidfd_open, fake->worker, 0);
	fake->listener = (int)syscall(SYS_pidfd_getfd, process, number, 0);
	EXPECT(fake->listener >= 0 && write(pair[0], "", 1) == 1);
	(void)close(process);
	(void)close(pair[0]);
}

static void
answer_call(const struct fake_supervisor *fake, uint64_t call, int error, uint32_t flags)
{
	struct seccomp_notif_resp response = {.id = call, .error = -error, .flags = flags};

	EXPECT(ioctl(fake->listener, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0);
}

/* Gives the worker what it reads its channel by. */
static void
give_grant(const struct fake_supervisor *fake, uint64_t call)
{
	struct seccomp_notif_addfd place = {.id = call,
	    .flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND,
	    .newfd = SHAI_FD_GRANT};
	int file = memfd_create("grant", MFD_CLOEXEC);

	EXPECT(write(file, &fake->grant, sizeof(fake->grant)) == sizeof(fake->grant));
	place.srcfd = (uint32_t)file;
	EXPECT(ioctl(fake->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &place) == SHAI_FD_GRANT);
	(void)close(file);
}

bool
fake_supervisor_await(struct fake_supervisor *fake, bool seal, fake_examination *examine)
{
	for (;;) {
		struct pollfd ready = {.fd = fake->listener, .events = POLLIN};
		struct seccomp_notif call = {0};

		EXPECT(poll(&ready, 1, -1) == 1);
		if ((ready.revents & POLLIN) == 0)
			return false;
		EXPECT(ioctl(fake->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0);
		fake->accept_call = call.id;
		if (call.data.nr == SYS_accept4 && call.data.args[0] == SHAI_FD_LISTEN)
			return true;
		if (call.data.nr == SYS_accept4) {
			give_grant(fake, call.id);
			continue;
		}
		if (call.data.nr == SYS_seccomp) {
			fake->asked++;
			if (examine != NULL)
				examine(fake, call.data.args[2]);
			fake->sealed = seal;
			answer_call(fake, call.id, seal ? 0 : EPERM, 0);
		} else if (!fake->sealed)
			answer_call(fake, call.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
		else /* brk(2) returns 0: it tells of failures by the address */
			answer_call(fake, call.id, call.data.nr == SYS_mmap ? ENOMEM : 0, 0);
	}
}

void
fake_supervisor_roll_back(struct fake_supervisor *fake)
{
	answer_call(fake, fake->accept_call, EAGAIN, 0);
	EXPECT(fake_supervisor_await(fake, false, NULL));
}

/* Places one end of a socket in the worker. Returns the other. */
static int
place_socket(const struct fake_supervisor *fake, int type, uint32_t number, uint32_t flags)
{
	struct seccomp_notif_addfd place = {
	    .id = fake->accept_call, .flags = SECCOMP_ADDFD_FLAG_SETFD | flags, .newfd = number};
	int pair[2];

	EXPECT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
	place.srcfd = (uint32_t)pair[1];
	EXPECT(ioctl(fake->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &place) == (int)number);
	(void)close(pair[1]);
	return pair[0];
}

int
fake_supervisor_channel(const struct fake_supervisor *fake)
{
	return place_socket(fake, SOCK_SEQPACKET, SHAI_FD_CHANNEL, 0);
}

bool
fake_supervisor_session(struct fake_supervisor *fake, void *answer, size_t size)
{
	struct shai_connected connected = fake_connected(SHAI_MODE_SHAI);
	int monitor = place_socket(fake, SOCK_SEQPACKET, SHAI_FD_MONITOR, 0), connection;
	struct shai_bound bound = {.header = {.version = SHAI_WIRE_VERSION,
				       .type = SHAI_BOUND,
				       .size = sizeof(bound),
				       .sequence = 1}};
	struct shai_authenticate login;
	struct shai_reset reset;
	bool waits;
	char more;

	EXPECT(send(monitor, &connected, sizeof(connected), 0) == sizeof(connected));
	if (fake->binds)
		EXPECT(send(monitor, &bound, sizeof(bound), 0) == sizeof(bound));
	connection = place_socket(fake, SOCK_STREAM, SHAI_FD_CONNECTION, SECCOMP_ADDFD_FLAG_SEND);
	waits = fake_supervisor_await(fake, false, NULL);
	EXPECT(read(connection, answer, size) == (ssize_t)size);
	/* The user sees the end, at once if the worker waits for the next one. */
	EXPECT(recv(connection, &more, 1, waits ? MSG_DONTWAIT : 0) == 0);
	if (fake->binds)
		EXPECT(recv(monitor, &login, sizeof(login), 0) == sizeof(login));
	EXPECT(recv(monitor, &reset, sizeof(reset), 0) == sizeof(reset));
	EXPECT(reset.header.type == SHAI_RESET && reset.counters.sessions == 1);
	(void)close(connection);
	(void)close(monitor);
	return waits;
}

int
fake_supervisor_end(struct fake_supervisor *fake, bool kill_it)
{
	int status;

	if (kill_it)
		EXPECT(kill(fake->worker, SIGKILL) == 0);
	(void)close(fake->listener);
	EXPECT(waitpid(fake->worker, &status, 0) == fake->worker);
	return status;
}
