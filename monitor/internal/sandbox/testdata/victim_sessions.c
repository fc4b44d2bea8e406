/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Attempts of a program that serves users to bring two of them together in one process,
 * in shared memory, or at shared descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

static char word[16]; /* what a user has said */

static long
accept_user(void)
{
	return syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0L);
}

/* Has a process for a user's session end with 0 once the user's word is in memory. */
static int
serve_user(void *unused)
{
	long connection = accept_user();

	(void)unused;
	if (connection < 0)
		_exit(errno);
	_exit(read((int)connection, word, sizeof(word) - 1) <= 0);
}

/* A child's error is its exit status. */
static long
outcome_of(long child)
{
	int status;

	if (child < 0)
		return -1;
	if (waitpid((pid_t)child, &status, __WALL) != child)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return status == 0 ? 0 : -1;
}

/* The child's stack, which the parent must not use in the meantime. */
static char stack[1 << 16] __attribute__((aligned(16)));

long
serve_in_clone(long flags)
{
	return outcome_of(clone(serve_user, stack + sizeof(stack), (int)flags | SIGCHLD, NULL));
}

long
overhear_memory(void)
{
	if (serve_in_clone(CLONE_VM) < 0)
		return -1;
	return word[0] != '\0' ? 0 : -1;
}

long
overhear_descriptor(void)
{
	if (serve_in_clone(CLONE_FILES) < 0)
		return -1;
	return read(SHAI_FD_MONITOR, word, 1); /* the session's, where the program's was */
}

long
overhear_vfork(void)
{
	pid_t child = vfork();

	if (child == 0)
		serve_user(NULL);
	if (outcome_of(child) < 0)
		return -1;
	return word[0] != '\0' ? 0 : -1;
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
		for (;;)
			pause();
	result = syscall(SYS_get_robust_list, worker, &list, &size);
	if (kill(worker, SIGKILL) < 0 || waitpid(worker, NULL, 0) != worker)
		return -1;
	return result;
}

/* Does something in a worker; its error is the worker's. */
static long
in_worker(long (*attempt)(void))
{
	pid_t worker = fork();

	if (worker == 0)
		_exit(attempt() < 0 ? errno : 0);
	return outcome_of(worker);
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
	if (accept_user() < 0)
		return -1;
	return in_worker(accept_user);
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
