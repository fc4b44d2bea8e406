/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What it takes to make a worker ready for the next session: rolled back by the roll-back code,
 * or forked again. Two processes with the same pages take turns: a worker that is rolled back,
 * and a zygote that forks a worker for each session.
 *
 * A session writes to its pages and opens descriptors. Its own work, without the page faults of
 * a forked worker, is subtracted: what is left of a forked one is fork, faults, exit and wait.
 * There is no supervisor and no filter.
 */
#ifndef SUPERVISOR_TESTS_RECYCLING_H
#define SUPERVISOR_TESTS_RECYCLING_H

#include <err.h>
#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ROUNDS 101

/* Ends the measurement when a condition does not hold. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			err(1, "line %d: not so: %s", __LINE__, #condition);                       \
	} while (0)

struct setting {
	size_t pages;
	int descriptors;
};

enum kind {
	ROLLED_BACK,
	FORKED,
	FORKED_WRITTEN,
	KINDS
};

/* In microseconds, by round. */
struct samples {
	double time[KINDS][ROUNDS];
	double writing[ROUNDS]; /* a session's own work: to write to its pages */
	double opening[ROUNDS]; /* … and to open its descriptors */
};

/* Fills the samples, which are in memory that is shared with child processes. */
void recycling_measure(struct setting setting, struct samples *samples);

#endif
