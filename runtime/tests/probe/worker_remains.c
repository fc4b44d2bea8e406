/* SPDX-License-Identifier: BSD-2-Clause */
#include <sys/types.h>
/* Other headers of FreeBSD need the one above. */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe_worker.h"

#define DESCRIPTORS 1024

static char remembered[64];

void
probe_remember(char *rest)
{
	snprintf(remembered, sizeof(remembered), "%s", rest);
	answer("remembered");
}

void
probe_recall(__attribute__((unused)) char *rest)
{
	answer("recalled %s", *remembered == '\0' ? "nothing" : remembered);
}

void
probe_search(char *rest)
{
	extern char edata[], end[];

	answer(
	    memmem(edata, (size_t)(end - edata), rest, strlen(rest)) == NULL ? "absent" : "found");
}

/* Both are the process's, and outlive what has made them unless somebody sees to it. */
void
probe_leave(__attribute__((unused)) char *rest)
{
	static const struct itimerval late = {{0, 0}, {1000, 0}};
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGUSR1);
	if (setitimer(ITIMER_REAL, &late, NULL) == -1 ||
	    sigprocmask(SIG_BLOCK, &held, NULL) == -1 || raise(SIGUSR1) != 0)
		answer_error("leave");
	else
		answer("left");
}

void
probe_left(__attribute__((unused)) char *rest)
{
	struct itimerval timer = {{0, 0}, {0, 0}};
	sigset_t pending;

	sigemptyset(&pending);
	getitimer(ITIMER_REAL, &timer);
	sigpending(&pending);
	answer("timer %s, signal %s", timer.it_value.tv_sec == 0 ? "none" : "runs",
	    sigismember(&pending, SIGUSR1) ? "pending" : "none");
}

void
probe_descriptors(__attribute__((unused)) char *rest)
{
	unsigned count = 0;

	for (int number = 0; number < DESCRIPTORS; number++)
		count += fcntl(number, F_GETFD) != -1;
	answer("descriptors %u", count);
}

void
probe_counted(__attribute__((unused)) char *rest)
{
	answer("counted %ju", (uintmax_t)shai_counters()->fast_opens);
}

void
probe_count(char *rest)
{
	struct shai_counters *counters = (struct shai_counters *)(uintptr_t)shai_counters();

	counters->fast_opens = strtoull(rest, NULL, 0);
	probe_counted(rest);
}

static int
accept_and_answer(void *unused)
{
	int connection = accept4(SHAI_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);

	(void)unused;
	if (connection == -1)
		answer_error("");
	else
		answer("connection %d", connection);
	return (0);
}

/*
 * Makes a thread as pthread_create(3) does, without the parts that make threads
 * useful.
 */
static int
start_thread(int (*run)(void *))
{
#ifdef __linux__
	static char stack[1 << 16] __attribute__((aligned(16)));

	return (clone(run, stack + sizeof(stack),
	    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	    NULL));
#else
	(void)run;
	errno = ENOSYS;
	return (-1);
#endif
}

/* A second user for the same process: what a worker without a reset would do. */
void
probe_again(char *rest)
{
	pid_t child = 0;

	if (strcmp(rest, "in a thread") == 0) {
		if (start_thread(accept_and_answer) == -1)
			answer_error("");
		return;
	}
	if (strcmp(rest, "in a child") == 0)
		child = fork();
	if (child > 0)
		waitpid(child, NULL, 0);
	else if (child == -1)
		answer_error("");
	else
		accept_and_answer(NULL);
	if (child == 0 && *rest != '\0')
		_exit(0);
}

/* Tells the monitor that the session is over and keeps everything it had. */
void
probe_linger(__attribute__((unused)) char *rest)
{
	struct shai_reset reset = {.header = {SHAI_WIRE_VERSION, SHAI_RESET, sizeof(reset), 0}};

	if (send(SHAI_FD_MONITOR, &reset, sizeof(reset), 0) == -1)
		answer_error("reset");
	else
		answer("lingering");
	pause();
}
