/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The attempts for which several threads or processes, or signals, are needed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

static const char *good_path, *bad_path;
static char racing[256];

static void *
rewrite(void *unused)
{
	for (;;) {
		memcpy(racing, bad_path, strlen(bad_path) + 1);
		memcpy(racing, good_path, strlen(good_path) + 1);
	}
	return unused;
}

long
race(const char *good, const char *bad, long rounds)
{
	pthread_t thread;
	long opened = 0;

	good_path = good;
	bad_path = bad;
	strcpy(racing, good);
	if (pthread_create(&thread, NULL, rewrite, NULL) != 0)
		return -1;
	while (rounds-- > 0) {
		long descriptor = syscall(SYS_openat, AT_FDCWD, racing, O_RDONLY, 0);

		if (descriptor >= 0) {
			opened++;
			if (show(descriptor) < 0)
				return -1;
			close((int)descriptor);
		}
	}
	return opened > 0 ? 0 : -1;
}

static volatile sig_atomic_t alarms;

static void
count_alarm(int signal)
{
	alarms += signal == SIGALRM;
}

long
open_amid_signals(const char *path)
{
	struct sigaction action = {.sa_handler = count_alarm};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	long descriptor;

	if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
		return -1;
	/* Until the monitor has received it, a signal still interrupts the call. */
	do
		descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
	while (descriptor < 0 && errno == EINTR);
	if (setitimer(ITIMER_REAL, &never, NULL) < 0 || alarms == 0)
		return -1;
	return show(descriptor);
}

/* No descriptor that it gets is one that it has already. */
long
open_often(const char *path, long times)
{
	for (long i = 0; i < times; i++) {
		long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);

		if (descriptor < 0)
			return -1;
		if (descriptor <= STDERR_FILENO) {
			printf("open %ld returned %ld\n", i, descriptor);
			errno = EBADF;
			return -1;
		}
		close((int)descriptor);
	}
	return 0;
}

long
open_in_vfork(const char *path)
{
	int status;
	pid_t child = vfork();

	if (child == 0)
		_exit(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0) < 0);
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

long
exhaust(const char *path)
{
	while (syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 0) >= 0)
		;
	return -1;
}

static void *
do_nothing(void *argument)
{
	return argument;
}

static long
make(const char *what)
{
	pthread_t thread;

	if (strcmp(what, "thread") == 0) {
		errno = pthread_create(&thread, NULL, do_nothing, NULL);
		return errno == 0 ? 0 : -1;
	}
	if (strcmp(what, "vfork") == 0) {
		pid_t made = vfork();

		if (made == 0)
			_exit(0);
		return made;
	}
	if (strcmp(what, "clone") == 0)
		return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (strcmp(what, "sibling") == 0)
		return fork_worker();
	return syscall(SYS_fork);
}

long
make_in_fork(const char *what)
{
	pid_t worker = fork();
	int status;

	if (worker == 0)
		_exit(make(what) < 0);
	return worker > 0 && waitpid(worker, &status, 0) == worker && status == 0 ? 0 : -1;
}

long
make_in_worker(const char *what)
{
	long worker = fork_worker();

	if (worker < 0)
		return -1;
	if (worker == 0)
		_exit(make(what) < 0 ? errno : WORKER_SUCCEEDED);
	wait_for_ever();
}
