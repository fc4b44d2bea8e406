/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Linux backend: a supervisor makes the workers and reads their channels.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "exchange.h"
#include "failure.h"
#include "linux/gate.h"
#include "linux/seal.h"
#include "transfers.h"

int
shai_backend_prepare(void)
{
	return 0;
}

/*
 * Makes the system call itself, since the preload layer (or another one) interposes
 * openat(3).
 */
int
shai_backend_open_in_view(int directory, const char *name)
{
	return (int)syscall(SYS_openat, directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* The filter sends every openat2 to the monitor. */
int
shai_backend_ask_open(int directory, const char *name, int flags, mode_t mode)
{
	struct open_how how = {.flags = (unsigned int)flags, .mode = mode};

	return (int)syscall(SYS_openat2, directory, name, &how, sizeof(how));
}

/* In a task that may raise its taint, the filter lets no write return before the answer. */
int
shai_backend_register(const struct shai_register *request, bool again)
{
	(void)again;
	return shai_exchange_send(request, sizeof(*request));
}

/*
 * With CLONE_PARENT the worker is a child of the supervisor, so the task learns nothing of
 * its end. The filter allows this call only, and the supervisor answers it when it wants
 * a worker. fork(3) cannot make it. What it would do beyond it is not needed: the zygote
 * has one thread, so no lock is held, and the C library asks the kernel for the thread's
 * id where it matters, as in raise(3).
 */
pid_t
shai_backend_fork_worker(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}

static bool sealed; /* this worker is rolled back between sessions */

/*
 * The supervisor answers the call itself, after it has placed every descriptor. A sealed
 * worker begins here for each session.
 */
int
shai_backend_accept(void)
{
	int connection = (int)shai_seal_and_accept();

	sealed = connection >= 0;
	if (sealed)
		return connection;
	do
		connection = accept4(SHAI_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);
	while (connection < 0 && errno == EINTR);
	if (connection < 0)
		return shai_fail(errno, "accept: %s", strerror(errno));
	return connection;
}

/* The supervisor reads the channel, or, except in the dynamic modes, a sealed worker itself. */
int
shai_backend_channel(enum shai_mode mode)
{
	return sealed && !shai_mode_is_dynamic(mode) ? SHAI_FD_CHANNEL : SHAI_FD_MONITOR;
}

int
shai_backend_decisions(void)
{
	return SHAI_FD_MONITOR;
}

ssize_t
shai_backend_receive_transfer(int from, uint32_t query, void *buffer, size_t size)
{
	struct shai_message message;

	if (from != SHAI_FD_MONITOR)
		return shai_gate_receive(from, query, buffer, size);
	if (shai_exchange_receive(&message) != 0)
		return -1;
	if (message.descriptor_count != 0 || !shai_transfers_keep(message.bytes))
		return shai_exchange_refuse(&message, "SHAI_TRANSFER", "it is another record");
	return (ssize_t)shai_transfers_take(buffer);
}

bool
shai_backend_holds_directories(void)
{
	return true;
}

/*
 * The roll-back code closes the session's descriptors, but not the connection, whose number
 * is reserved: the client has to see its end at once. A worker that is not sealed has to
 * exit, and all its resources end with it.
 */
void
shai_backend_end_session(int connection)
{
	if (!sealed)
		return;
	(void)shutdown(connection, SHUT_RDWR);
	shai_roll_back();
}

int
shai_backend_random(void *buffer, size_t size)
{
	/* Requests of up to 256 bytes are never cut short. */
	return getrandom(buffer, size, 0) == (ssize_t)size ? 0 : -1;
}
