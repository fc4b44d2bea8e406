/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rights of the descriptors that a session gets. Each function returns a
 * descriptor, close-on-exec and owned by the caller, with at most these rights, or -1
 * with errno.
 */
#ifndef SHAI_STUB_RIGHTS_H
#define SHAI_STUB_RIGHTS_H

/*
 * Takes the descriptor over: a directory beneath which the session opens files for
 * reading.
 */
int stub_for_reading(int descriptor);

/* Copies the channel for waiting only, since the stub reads it. */
int stub_for_waiting(int descriptor);

/* Copies a connection for receiving only. */
int stub_for_receiving(int descriptor);

/*
 * Takes the descriptor over: the session's end of the mailbox, which it cannot send
 * on.
 */
int stub_for_answers(int descriptor);

#endif
