/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One question with a socket of its own for the answer. Async-signal-safe, and for
 * any thread at any time.
 */
#ifndef SHAI_ASK_H
#define SHAI_ASK_H

#include <sys/uio.h>

#include "shai_requests.h"

/* The sequence of every request: its answer has a socket of its own. */
#define SHAI_ASK_SEQUENCE 1

/*
 * Sends the parts as one record over a socket and waits for the shai_answer.
 * directory goes along unless it is -1. With status 0, *descriptor becomes the
 * descriptor that came with the answer, close-on-exec and the caller's, or -1.
 * Returns the answer's value; or -1 with errno: the answer's status, EACCES when
 * there is no proper answer.
 */
int shai_ask(int socket, const struct iovec *parts, int part_count, int directory, int *descriptor);

/*
 * Asks for a file to be opened. Returns its descriptor, close-on-exec, or -1 with
 * errno, ENAMETOOLONG among others.
 */
int shai_ask_path(int socket, int directory, const char *path, int flags, uint32_t mode);

#endif
