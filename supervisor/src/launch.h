/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts the launcher, which confines itself and becomes the zygote.
 */
#ifndef SUPERVISOR_LAUNCH_H
#define SUPERVISOR_LAUNCH_H

#include <stddef.h>
#include <sys/types.h>

/*
 * What this process inherits, besides SHAI_CONTROL_FD. A keeper of the monitor (keeper.go)
 * inherits the same numbers.
 */
#define LAUNCH_PLAN_FD 3   /* the plan; only the launcher reads it */
#define LAUNCH_STATUS_FD 4 /* why the launch failed, text; closed by a successful exec */
#define LAUNCH_FIRST_FD 6  /* the task's descriptors, in the plan's order */

struct launch {
	pid_t pid;        /* of the launcher, leader of a session and a process group of its own */
	int control;      /* where the launcher sends the seccomp listener */
	size_t files_max; /* how many files this process may have open now */
};

/*
 * Starts program, the monitor's, as the launcher. It gets the plan, the status pipe, a
 * control socket, the task's descriptors (count of them) and, after those, the added one, at
 * numbers above the reserved ones. The launcher is killed when this process ends. After a success,
 * this process holds none of those descriptors but the added one, and its limit of open files is
 * the highest that it may have; the launcher keeps the former one. Returns NULL, or what failed,
 * with errno.
 */
const char *launch_start(const char *program, int count, int added, struct launch *launch);

#endif
