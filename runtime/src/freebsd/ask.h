/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A request with a socket of its own for the answer. Async-signal-safe, and safe in
 * any thread at any time.
 */
#ifndef SHAI_ASK_H
#define SHAI_ASK_H

#include <sys/uio.h>

#include "shai_requests.h"

/* The sequence number of every request: each answer has a socket of its own. */
#define SHAI_ASK_SEQUENCE 1

/*
 * Sends the parts as one record over a socket, with directory unless that is -1, and
 * waits for the shai_answer. With status 0, *descriptor becomes the descriptor that
 * came with the answer, close-on-exec and owned by the caller, or -1. Returns the
 * answer's value, or -1 with errno: the answer's status, or EACCES without a
 * well-formed answer.
 */
int shai_ask(int socket, const struct iovec *parts, int part_count, int directory, int *descriptor);

/* Makes a request that is a header only. Returns 0, or -1 with errno. */
int shai_ask_plainly(enum shai_request_type type);

/*
 * Asks for a file to be opened. Returns its descriptor, close-on-exec, or -1 with
 * errno, which may be ENAMETOOLONG.
 */
int shai_ask_path(int socket, int directory, const char *path, int flags, uint32_t mode);

#endif
