/* SPDX-License-Identifier: BSD-2-Clause */
#include "slots.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "parent.h"

#define SLOTS_MAX 32
#define AT_ONCE_MILLISECONDS 1000 /* a worker that failed within this time died immediately */
#define DELAY_FIRST_MILLISECONDS 20
#define DELAY_MAX_MILLISECONDS 5000
#define STOP_MILLISECONDS 2000 /* until a worker that does not stop is killed */

struct slot {
	pid_t pid; /* 0 while there is no worker */
	int64_t started;
	int64_t ready;     /* when a worker may be forked again */
	unsigned failures; /* in a row */
};

struct zygote {
	struct worker *pristine;
	struct slot slot[SLOTS_MAX];
	uint32_t count;
	sigset_t waited;   /* the signals that the zygote waits for, and blocks */
	sigset_t original; /* what a worker gets back */
};

static int64_t
milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Doubles the delay of a slot whose last attempt failed. */
static void
delay(struct slot *slot, uint32_t number, const char *event, int detail)
{
	int64_t wait = DELAY_FIRST_MILLISECONDS;

	for (unsigned i = 0; i < slot->failures && wait < DELAY_MAX_MILLISECONDS; i++)
		wait *= 2;
	wait = wait < DELAY_MAX_MILLISECONDS ? wait : DELAY_MAX_MILLISECONDS;
	slot->failures++;
	slot->ready = milliseconds_now() + wait;
	fprintf(stderr,
	    "syse-frontend: worker of slot %u: %s %d, %u times in a row; its own message is above; "
	    "the next one starts in %lld ms\n",
	    number, event, detail, slot->failures, (long long)wait);
}

/* Records a worker's end. */
static void
buried(struct zygote *zygote, pid_t pid, int status)
{
	for (uint32_t i = 0; i < zygote->count; i++) {
		struct slot *slot = &zygote->slot[i];

		if (slot->pid != pid)
			continue;
		slot->pid = 0;
		slot->ready = 0;
		if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_SERVED) {
			slot->failures = 0;
			return;
		}
		if (milliseconds_now() - slot->started > AT_ONCE_MILLISECONDS)
			slot->failures = 0;
		if (WIFSIGNALED(status))
			delay(slot, i, "killed by signal", WTERMSIG(status));
		else
			delay(slot, i, "failed with status", WEXITSTATUS(status));
		return;
	}
}

static void
bury(struct zygote *zygote)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		buried(zygote, pid, status);
}

static int
become_worker(const struct zygote *zygote, pid_t parent)
{
	struct worker *worker = zygote->pristine;

	if (!end_with_parent(parent))
		return WORKER_FAILED;
	sigprocmask(SIG_SETMASK, &zygote->original, NULL);
	return worker_run(worker);
}

/* Forks a worker into every empty slot whose delay is over. Returns 0 in a worker. */
static pid_t
fill_slots(struct zygote *zygote)
{
	for (uint32_t i = 0; i < zygote->count; i++) {
		struct slot *slot = &zygote->slot[i];
		pid_t pid;

		if (slot->pid != 0 || slot->ready > milliseconds_now())
			continue;
		pid = shai_fork_worker(i);
		if (pid == 0)
			return 0;
		if (pid < 0) {
			delay(slot, i, "fork failed with errno", errno);
			continue;
		}
		slot->pid = pid;
		slot->started = milliseconds_now();
	}
	return 1;
}

/*
 * Returns how long to wait for a signal: until the end of the next slot's delay, or
 * without end (-1).
 */
static int64_t
next_wait(const struct zygote *zygote)
{
	int64_t nearest = -1, now = milliseconds_now();

	for (uint32_t i = 0; i < zygote->count; i++) {
		int64_t left = zygote->slot[i].ready - now;

		if (zygote->slot[i].pid != 0)
			continue;
		left = left > 0 ? left : 0;
		nearest = nearest < 0 || left < nearest ? left : nearest;
	}
	return nearest;
}

/* Waits for one of the zygote's signals. Returns its number, or 0 after the timeout. */
static int
wait_for_signal(const struct zygote *zygote, int64_t milliseconds)
{
	struct timespec limit = {
	    .tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
	int signal_number = sigtimedwait(&zygote->waited, NULL, milliseconds < 0 ? NULL : &limit);

	return signal_number > 0 ? signal_number : 0;
}

/* Returns false if one of the workers could not be signalled. */
static bool
signal_workers(const struct zygote *zygote, int signal_number)
{
	bool signalled = true;

	for (uint32_t i = 0; i < zygote->count; i++)
		if (zygote->slot[i].pid > 0 && kill(zygote->slot[i].pid, signal_number) != 0)
			signalled = false;
	return signalled;
}

static bool
any_worker(const struct zygote *zygote)
{
	for (uint32_t i = 0; i < zygote->count; i++)
		if (zygote->slot[i].pid > 0)
			return true;
	return false;
}

static void
stop_workers(struct zygote *zygote)
{
	int64_t deadline = milliseconds_now() + STOP_MILLISECONDS;
	int status;
	pid_t pid;

	/*
	 * If a sandbox does not allow signals to other processes, it ends the workers
	 * with this one.
	 */
	if (!signal_workers(zygote, SIGTERM))
		return;
	while (any_worker(zygote)) {
		int64_t left = deadline - milliseconds_now();

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			for (uint32_t i = 0; i < zygote->count; i++)
				if (zygote->slot[i].pid == pid)
					zygote->slot[i].pid = 0;
		if (!any_worker(zygote))
			return;
		if (left <= 0) {
			signal_workers(zygote, SIGKILL);
			left = 100;
		}
		wait_for_signal(zygote, left);
	}
}

int
slots_run(struct worker *pristine)
{
	struct zygote zygote = {.pristine = pristine, .count = pristine->settings->workers};
	pid_t self = getpid();

	sigemptyset(&zygote.waited);
	sigaddset(&zygote.waited, SIGCHLD);
	sigaddset(&zygote.waited, SIGTERM);
	sigaddset(&zygote.waited, SIGINT);
	sigprocmask(SIG_BLOCK, &zygote.waited, &zygote.original);
	for (;;) {
		int signal_number;

		if (fill_slots(&zygote) == 0)
			return become_worker(&zygote, self);
		signal_number = wait_for_signal(&zygote, next_wait(&zygote));
		if (signal_number == SIGTERM || signal_number == SIGINT) {
			stop_workers(&zygote);
			return 0;
		}
		bury(&zygote);
	}
}
