/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Attempts of a program that serves users to bring two of them together in one process,
 * in shared memory, or at shared descriptors.
 *
 * Its workers are children of its supervisor, so it does not learn how they end: their
 * exit status is for the test. It waits for ever where a worker decides.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

static char word[16]; /* what a user has said */

long
fork_worker(void)
{
	return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, 0L);
}

_Noreturn void
wait_for_ever(void)
{
	for (;;)
		pause();
}

static long
accept_user(void)
{
	return syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0L);
}

/* Has a process for a user's session end well once the user's word is in memory. */
static int
serve_user(void *unused)
{
	long connection = accept_user();

	(void)unused;
	if (connection < 0)
		_exit(errno);
	_exit(read((int)connection, word, sizeof(word) - 1) > 0 ? WORKER_SUCCEEDED : EIO);
}

/* The child's stack, which the parent must not use in the meantime. */
static char stack[1 << 16] __attribute__((aligned(16)));

static long
clone_to_serve(long flags)
{
	return clone(serve_user, stack + sizeof(stack), (int)flags | CLONE_PARENT | SIGCHLD, NULL);
}

long
serve_in_clone(long flags)
{
	if (clone_to_serve(flags) < 0)
		return -1;
	wait_for_ever();
}

long
overhear_memory(long flags)
{
	if (clone_to_serve(CLONE_VM | flags) < 0)
		return -1;
	while (((volatile char *)word)[0] == '\0')
		(void)sched_yield();
	return 0;
}

long
overhear_descriptor(void)
{
	if (clone_to_serve(CLONE_FILES) < 0)
		return -1;
	while (read(SHAI_FD_MONITOR, word, 1) != 1) /* the session's, where the program's was */
		(void)sched_yield();
	return 0;
}

/* A process chooses the address of its list of robust futexes; the kernel looks at it at its end. */
long
overhear_list(void)
{
	void *list;
	size_t size;
	long result;
	pid_t worker = fork();

	if (worker == 0)
		wait_for_ever();
	result = syscall(SYS_get_robust_list, worker, &list, &size);
	if (kill(worker, SIGKILL) < 0 || waitpid(worker, NULL, 0) != worker)
		return -1;
	return result;
}

long
in_worker(long (*attempt)(void))
{
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(attempt() < 0 ? errno : WORKER_SUCCEEDED);
	wait_for_ever();
}

static void *
accept_in_thread(void *refused)
{
	if (accept_user() < 0)
		*(int *)refused = errno;
	return NULL;
}

static long
accept_twice_at_once(void)
{
	pthread_t thread;
	int theirs = 0, ours = 0;

	errno = pthread_create(&thread, NULL, accept_in_thread, &theirs);
	if (errno != 0)
		return -1;
	accept_in_thread(&ours);
	pthread_join(thread, NULL);
	errno = ours != 0 ? ours : theirs;
	return errno == 0 ? 0 : -1;
}

static long
accept_twice(void)
{
	return accept_user() < 0 ? -1 : accept_user();
}

static long
accept_in_fork(void)
{
	pid_t child;
	int status;

	if (accept_user() < 0 || (child = fork()) < 0)
		return -1;
	if (child == 0)
		_exit(accept_user() < 0 ? errno : 0);
	if (waitpid(child, &status, 0) != child)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return status == 0 ? 0 : -1;
}

long
serve_two_at_once(void)
{
	return in_worker(accept_twice_at_once);
}

long
serve_two_in_turn(void)
{
	return in_worker(accept_twice);
}

long
serve_in_fork_of_worker(void)
{
	return in_worker(accept_in_fork);
}

static const char *way; /* to the task's output */

/* Before the session: another number for the output. */
static int
keep_output(void)
{
	if (strcmp(way, "dup") == 0)
		return dup(STDERR_FILENO);
	if (strcmp(way, "dup3") == 0)
		return dup3(STDERR_FILENO, SHAI_FD_RESERVED_END + 10, 0);
	if (strcmp(way, "fcntl") == 0)
		return fcntl(STDERR_FILENO, F_DUPFD, SHAI_FD_RESERVED_END);
	if (strcmp(way, "open") == 0)
		return (int)syscall(SYS_open, "/proc/self/fd/2", O_WRONLY);
	return STDERR_FILENO;
}

/* A worker prints what its user has said. */
static long
print_in_session(void)
{
	int output = keep_output();
	long connection;
	ssize_t length;

	if (output < 0)
		return -1;
	connection = accept_user();
	length = connection < 0 ? -1 : read((int)connection, word, sizeof(word));
	if (length <= 0 || write(STDOUT_FILENO, word, (size_t)length) != length)
		return -1;
	return write(output, word, (size_t)length) == length ? 0 : -1;
}

long
print_word(const char *where)
{
	way = where;
	return in_worker(print_in_session);
}

/* The program, which has no user, takes one. */
long
serve_itself(void)
{
	return accept_user();
}

/* A connection and the session's socket work, and the socket is not the program's. */
static long
greet(void)
{
	char byte;
	long connection = accept_user();

	if (connection < 0 || write((int)connection, "hello", 5) != 5)
		return -1;
	return read(SHAI_FD_MONITOR, &byte, 1) == 1 ? 0 : -1;
}

long
serve(long workers)
{
	while (workers-- > 0) {
		long worker = fork_worker();

		if (worker < 0)
			return -1;
		if (worker == 0)
			_exit(greet() < 0 ? errno : WORKER_SUCCEEDED);
	}
	wait_for_ever();
}

static const char *wanted;

static long
open_with_user(void)
{
	return accept_user() < 0 ? -1 : syscall(SYS_open, wanted, O_RDONLY);
}

long
open_in_session(const char *path)
{
	wanted = path;
	return in_worker(open_with_user);
}

long
read_all(long first, long count)
{
	char text[16];

	for (long number = first; number < first + count; number++) {
		ssize_t size = read((int)number, text, sizeof(text) - 1);

		if (size < 0)
			return -1;
		text[size] = '\0';
		if (strtol(text, NULL, 10) != number) {
			errno = EBADF;
			return -1;
		}
	}
	return 0;
}

static volatile sig_atomic_t terminated;

static void
terminate(int signal)
{
	terminated = signal;
}

_Noreturn void
serve_for_ever(void)
{
	struct sigaction action = {.sa_handler = terminate};

	(void)sigaction(SIGTERM, &action, NULL);
	while (!terminated)
		if (fork_worker() == 0) {
			if (accept_user() < 0)
				_exit(errno);
			wait_for_ever();
		}
	_exit(0);
}
