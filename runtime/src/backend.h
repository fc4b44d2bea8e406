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

#include "shai_wire.h"

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
 * Opens a file beneath a directory by asking the monitor, after the kernel has refused
 * to: for directories with SHAI_RIGHT_ASK. Returns the descriptor.
 */
int shai_backend_ask_open(int directory, const char *name, int flags, mode_t mode);

/*
 * Sends a registration to the monitor, which answers on SHAI_FD_MONITOR. again says that the
 * process has registered before: the monitor may then examine it, and put descriptors at
 * its numbers, before this returns. Returns 0, or -1 after shai_fail.
 */
int shai_backend_register(const struct shai_register *request, bool again);

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

/*
 * Returns the descriptor on which a session that has a monitor, in this mode, waits for
 * transfers; and the one on which those come that somebody had to decide on, or -1.
 */
int shai_backend_channel(enum shai_mode mode);
int shai_backend_decisions(void);

/*
 * Receives a record of the session's channel, once one of the two, from, is readable.
 * It may, but need not, answer the query. Returns its length, 0 if the sender is gone, or -1
 * with errno; EAGAIN if there is none.
 */
ssize_t shai_backend_receive_transfer(int from, uint32_t query, void *buffer, size_t size);

/*
 * Reports whether a session holds the directories of its classes, which SHAI_BOUND
 * brings. Otherwise a stub opens documents for it.
 */
bool shai_backend_holds_directories(void);

/*
 * Ends a session of which the monitor was told that it is over, with its connection; may
 * not return.
 */
void shai_backend_end_session(int connection);

/* Fills the buffer with unpredictable bytes. */
int shai_backend_random(void *buffer, size_t size);

#endif
