/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a session may do with what it is given. Each function returns a descriptor,
 * close-on-exec and the caller's, with at most these rights, or -1 with errno.
 */
#ifndef SHAI_STUB_RIGHTS_H
#define SHAI_STUB_RIGHTS_H

/* Takes the descriptor: a directory to open files beneath, for reading. */
int stub_for_reading(int descriptor);

/* A copy to wait on, for who reads the channel is the stub. */
int stub_for_waiting(int descriptor);

/* A copy of a connection that cannot be written to. */
int stub_for_receiving(int descriptor);

/* Takes the descriptor: the session's end of the mailbox, on which it cannot send. */
int stub_for_answers(int descriptor);

#endif
