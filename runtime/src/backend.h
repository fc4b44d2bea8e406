/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the library needs of an operating system; one implementation per system.
 * Functions return -1 with errno on failure.
 */
#ifndef SHAI_BACKEND_H
#define SHAI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * What has to be there before the program's first line: a gate to read channels
 * through, a handler for refused calls. Once, from the library's constructor: later
 * the filter's assumption, that the gate's page holds nothing else, could be attacked.
 */
int shai_backend_prepare(void);

/* read(2) on a channel through the gate; ENOSYS when there is none. */
ssize_t shai_backend_gate_read(int descriptor, void *buffer, size_t size);

/*
 * Opens a file of the view, "class/bucket/id", for reading, close-on-exec, not
 * following a final symbolic link. Never answered by the monitor.
 */
int shai_backend_open_in_view(const char *name);

/*
 * fork(2) for a worker that a monitor will give sessions, one after the other: may
 * return 0 more than once, each time into the state of the first.
 */
pid_t shai_backend_fork_worker(void);

/*
 * Waits for a user, in a worker that has a monitor. Returns the connection; all that
 * the session begins with is at its number then, and SHAI_CONNECTED can be received;
 * or -1 after shai_fail.
 */
int shai_backend_accept(void);

/*
 * Whether a session confines this process by what SHAI_BOUND brings. Otherwise it has
 * been confined from its beginning, and SHAI_BOUND brings neither view nor ruleset.
 */
bool shai_backend_restricts_itself(void);

/* Restricts this thread for good to a prepared ruleset; the descriptor stays open. */
int shai_backend_restrict(int ruleset);

/* Ends a session that has told its monitor so; may not return. */
void shai_backend_end_session(void);

/* Fills the buffer with unpredictable bytes. */
int shai_backend_random(void *buffer, size_t size);

#endif
