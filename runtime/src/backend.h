/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The interface to the operating system, with one implementation for each. Functions
 * return -1 with errno on failure.
 */
#ifndef SHAI_BACKEND_H
#define SHAI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Prepares what must exist before the program's first line: a handler for refused calls.
 * Called once, by the library's constructor.
 */
int shai_backend_prepare(void);

/*
 * Opens a file for reading, close-on-exec, without following a final symbolic link:
 * "class/bucket/id" beneath SHAI_FD_CAPABILITY, or "bucket/id" beneath a class's
 * directory. The monitor never answers this call.
 */
int shai_backend_open_in_view(int directory, const char *name);

/*
 * Forks a worker of a task that has a monitor, like fork(2). It may wait until a worker is
 * wanted. If the worker gets several sessions, one after the other, this returns 0 once
 * for each, in the same state as for the first.
 */
pid_t shai_backend_fork_worker(void);

/*
 * Waits for a user, in a worker that has a monitor. Returns the connection. The
 * descriptors that the session begins with are then at their numbers, and
 * SHAI_CONNECTED can be received. Or returns -1 after shai_fail.
 */
int shai_backend_accept(void);

/* Returns the descriptor on which a session that has a monitor waits for transfers. */
int shai_backend_channel(void);

/*
 * Receives a record of the session's channel, once shai_backend_channel() is readable.
 * Returns its length, or -1 with errno; EAGAIN if there is none.
 */
ssize_t shai_backend_receive_transfer(void *buffer, size_t size);

/*
 * Reports whether a session holds the directories of its classes, which SHAI_BOUND
 * brings. Otherwise a stub opens documents for it.
 */
bool shai_backend_holds_directories(void);

/* Ends a session of which the monitor was told that it is over; may not return. */
void shai_backend_end_session(void);

/* Fills the buffer with unpredictable bytes. */
int shai_backend_random(void *buffer, size_t size);

#endif
