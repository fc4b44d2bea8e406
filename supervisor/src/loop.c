/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define TURN_MAX 64 /* sources that one turn serves */

static int instance = -1;

int
loop_open(void)
{
	instance = epoll_create1(EPOLL_CLOEXEC);
	return instance < 0 ? -1 : 0;
}

int
loop_watch(struct source *source, int descriptor, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (epoll_ctl(instance, EPOLL_CTL_ADD, descriptor, &event) != 0)
		return -1;
	source->descriptor = descriptor;
	return 0;
}

void
loop_change(struct source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (source->descriptor >= 0 &&
	    epoll_ctl(instance, EPOLL_CTL_MOD, source->descriptor, &event) != 0)
		abort(); /* the descriptor is watched */
}

void
loop_release(struct source *source)
{
	/* The file may be open elsewhere, so closing alone would not end the watch. */
	if (source->descriptor >= 0)
		(void)epoll_ctl(instance, EPOLL_CTL_DEL, source->descriptor, NULL);
	source->descriptor = -1;
}

void
loop_forget(struct source *source)
{
	int descriptor = source->descriptor;

	loop_release(source);
	if (descriptor >= 0)
		(void)close(descriptor);
}

/* Rounds up, so that nothing turns around a deadline that has not quite come. */
static int
milliseconds_until(int64_t deadline)
{
	int64_t left;

	if (deadline == INT64_MAX)
		return -1;
	left = deadline - loop_now();
	if (left <= 0)
		return 0;
	return left > 3600 * SECOND ? 3600 * 1000 : (int)((left + MILLISECOND - 1) / MILLISECOND);
}

void
loop_turn(int64_t deadline)
{
	struct epoll_event events[TURN_MAX];
	int count = epoll_wait(instance, events, TURN_MAX, milliseconds_until(deadline));

	for (int i = 0; i < count; i++) {
		struct source *source = events[i].data.ptr;

		if (source->descriptor >= 0)
			source->ready(source, events[i].events);
	}
}

int64_t
loop_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

int64_t
loop_wall_clock(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}
