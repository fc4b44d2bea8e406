/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The descriptors that the supervisor waits for: one epoll instance, level triggered.
 */
#ifndef SUPERVISOR_LOOP_H
#define SUPERVISOR_LOOP_H

#include <stdint.h>

/*
 * One descriptor and what to do when it is ready. Sources live as long as the supervisor
 * and may be watched again after they were forgotten: a function must bear a call for
 * which nothing is ready, since the loop may have learned of it for an earlier descriptor.
 */
struct source {
	void (*ready)(struct source *source, uint32_t events);
	void *owner;
	int descriptor; /* -1: not watched */
};

/* Makes the epoll instance. Returns 0, or -1 with errno. */
int loop_open(void);

/*
 * Watches a descriptor for events (EPOLLIN, EPOLLOUT; 0: errors and the other side's end
 * only). The source takes the descriptor over. Returns 0, or -1 with errno; the
 * descriptor then still belongs to the caller.
 */
int loop_watch(struct source *source, int descriptor, uint32_t events);

/* Changes what a watched source waits for. */
void loop_change(struct source *source, uint32_t events);

/*
 * Stops to watch a source, whose descriptor goes back to the caller. Does nothing if it is
 * not watched.
 */
void loop_release(struct source *source);

/* Stops to watch a source and closes its descriptor. Does nothing if it is not watched. */
void loop_forget(struct source *source);

/*
 * Waits until a source is ready, at most until a deadline (nanoseconds, see loop_now;
 * INT64_MAX: no deadline), and calls the functions of all that are.
 */
void loop_turn(int64_t deadline);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t loop_now(void);

/* CLOCK_REALTIME in nanoseconds: what policies and the monitor call the time. */
int64_t loop_wall_clock(void);

#define MILLISECOND INT64_C(1000000)
#define SECOND (1000 * MILLISECOND)

#endif
