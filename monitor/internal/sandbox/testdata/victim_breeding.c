/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The programs that make many processes, and wait to be ended.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "victim.h"

static _Noreturn void
wait_after(const char *word)
{
	puts(word);
	fflush(stdout);
	for (;;)
		pause();
}

static void *
rest(void *argument)
{
	(void)pause();
	return argument;
}

static int
make_process(void)
{
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	return child > 0;
}

static int
make_thread(void)
{
	static pthread_attr_t small;
	pthread_t thread;

	(void)pthread_attr_init(&small);
	(void)pthread_attr_setstacksize(&small, 1 << 16);
	return pthread_create(&thread, &small, rest, NULL) == 0;
}

/* Tells how many of those that it attempted it has made. */
static _Noreturn void
multiply(int (*make)(void), long attempts)
{
	char word[32];
	long made = 0;

	while (attempts-- > 0)
		made += make();
	(void)snprintf(word, sizeof(word), "%ld", made);
	wait_after(word);
}

/* One process makes a successor outside of the group and ends, as the successor does, and so on. */
static _Noreturn void
chain(void)
{
	if (fork() == 0) {
		(void)setsid();
		for (;;)
			if (fork() != 0)
				_exit(0);
	}
	wait_after("ready");
}

/* Every process makes others without end; its user may have so many at most. */
static long
explode(rlim_t most)
{
	const struct rlimit net = {.rlim_cur = most, .rlim_max = most};

	if (getuid() == 0 || setrlimit(RLIMIT_NPROC, &net) != 0)
		return -1;
	puts("ready");
	fflush(stdout);
	for (;;)
		(void)fork();
}

#define IS(name) (strcmp(attempt, name) == 0)

long
breed(const char *attempt, char **a, long otherwise)
{
	long count = a[0] != NULL ? atol(a[0]) : 0;

	if (IS("ignore-term")) {
		(void)signal(SIGTERM, SIG_IGN);
		count = 2;
	}
	if (IS("breed") || IS("ignore-term")) {
		while (count-- > 0)
			(void)make_process();
		wait_after("ready");
	}
	if (IS("multiply")) multiply(make_process, count);
	if (IS("multiply-threads")) multiply(make_thread, count);
	if (IS("chain")) chain();
	if (IS("explode")) return explode((rlim_t)count);
	return otherwise;
}
