/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Attempts of a program that serves users to leave something behind that its workers
 * share: memory, descriptors, their state, signals.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

#define IS(name) (strcmp(what, name) == 0)

/* The worker leaves a word in memory that the program has mapped. */
static long
leave_in_memory(volatile char *memory)
{
	long worker;

	if (memory == MAP_FAILED || mprotect((void *)(uintptr_t)memory, 4096, PROT_READ | PROT_WRITE) < 0)
		return -1;
	worker = fork_worker();
	if (worker < 0)
		return -1;
	if (worker == 0) {
		memory[0] = 'x';
		_exit(0);
	}
	while (memory[0] != 'x')
		(void)sched_yield();
	return 0;
}

long
share_memory(const char *what, const char *path)
{
	int flags = MAP_SHARED, descriptor = -1, protection = PROT_READ;

	if (IS("anonymous"))
		flags |= MAP_ANONYMOUS;
	else if (IS("table")) {
		flags |= MAP_ANONYMOUS;
		descriptor = SHAI_FD_CLASSES;
	} else {
		descriptor = (int)syscall(SYS_open, path, O_RDWR);
		protection |= PROT_WRITE;
	}
	if (IS("validated"))
		flags = MAP_SHARED_VALIDATE;
	return leave_in_memory(mmap(NULL, 4096, protection, flags, descriptor, 0));
}

/* The worker writes to one end, the program reads from the other. */
static long
leave_at(int input, int output)
{
	char text[8] = "message";
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(write(input, text, sizeof(text)) == (ssize_t)sizeof(text) ? 0 : errno);
	return read(output, text, sizeof(text)) == (ssize_t)sizeof(text) ? 0 : -1;
}

static long
leave_offset(int descriptor)
{
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(lseek(descriptor, 3, SEEK_SET) < 0 ? errno : 0);
	while (lseek(descriptor, 0, SEEK_CUR) != 3)
		(void)sched_yield();
	return 0;
}

static long
leave_by_reading(int descriptor)
{
	char byte;
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(read(descriptor, &byte, 1) < 0 ? errno : 0);
	while (lseek(descriptor, 0, SEEK_CUR) != 1)
		(void)sched_yield();
	return 0;
}

static long
leave_flag(int descriptor)
{
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(fcntl(descriptor, F_SETFL, O_NONBLOCK) < 0 ? errno : 0);
	while ((fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0)
		(void)sched_yield();
	return 0;
}

/* Closes reserved numbers, so that the pipe takes their places. */
static long
leave_in_place(int number)
{
	int ends[2];

	close(number);
	close(number + 1);
	if (pipe(ends) < 0)
		return -1;
	return leave_at(ends[1], ends[0]);
}

long
share_descriptor(const char *what, const char *path)
{
	int ends[2];

	if (IS("pipe"))
		return pipe(ends) < 0 ? -1 : leave_at(ends[1], ends[0]);
	if (IS("pipe-in-place"))
		return leave_in_place(atoi(path));
	if (IS("socketpair"))
		return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 ? -1 : leave_at(ends[1], ends[0]);
	if (IS("eventfd")) {
		ends[0] = eventfd(0, 0);
		return leave_at(ends[0], ends[0]);
	}
	if (IS("offset"))
		return leave_offset((int)syscall(SYS_open, path, O_RDONLY));
	if (IS("table-offset"))
		return leave_offset(SHAI_FD_CLASSES);
	if (IS("table-read"))
		return leave_by_reading(SHAI_FD_CLASSES);
	if (IS("rollback-read"))
		return leave_by_reading(SHAI_FD_ROLLBACK);
	return leave_flag(atoi(path));
}

/* A worker signals its program, which waits for the signal. */
static long
signal_program(const char *what)
{
	sigset_t waited;
	siginfo_t sent = {.si_code = SI_QUEUE}, got;
	pid_t program = getpid();
	long result, worker;

	sigemptyset(&waited);
	sigaddset(&waited, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &waited, NULL) < 0)
		return -1;
	worker = fork_worker();
	if (worker < 0)
		return -1;
	if (worker == 0) {
		sent.si_value.sival_int = 42;
		if (IS("queue"))
			result = syscall(SYS_rt_sigqueueinfo, program, SIGUSR1, &sent);
		else if (IS("queue-thread"))
			result = syscall(SYS_rt_tgsigqueueinfo, program, program, SIGUSR1, &sent);
		else if (IS("group"))
			result = syscall(SYS_kill, 0, SIGUSR1);
		else if (IS("everybody"))
			result = syscall(SYS_kill, -program, SIGUSR1);
		else if (IS("thread"))
			result = syscall(SYS_tgkill, program, program, SIGUSR1);
		else if (IS("any-thread"))
			result = syscall(SYS_tkill, program, SIGUSR1);
		else
			result = syscall(SYS_kill, program, SIGUSR1);
		_exit(result < 0 ? errno : 0);
	}
	return sigwaitinfo(&waited, &got) == SIGUSR1 ? 0 : -1;
}

/* The program signals its worker. */
static long
signal_worker(int number)
{
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		wait_for_ever();
	return syscall(SYS_kill, worker, number);
}

static void
succeed(int signal)
{
	(void)signal;
	_exit(WORKER_SUCCEEDED);
}

static long
signal_self(void)
{
	if (signal(SIGUSR1, succeed) == SIG_ERR)
		return -1;
	return raise(SIGUSR1);
}

/* Everybody whom the worker may signal; signal 0 shows who that is, and ends nobody. */
static long
signal_all(void)
{
	return syscall(SYS_kill, -1, 0);
}

long
share_signal(const char *what, const char *number)
{
	if (IS("worker"))
		return signal_worker(atoi(number));
	if (IS("self"))
		return in_worker(signal_self);
	if (IS("all"))
		return in_worker(signal_all);
	return signal_program(what);
}
