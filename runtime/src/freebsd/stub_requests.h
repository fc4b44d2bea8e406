/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The requests that a session makes to its stub. All decisions of the stub are here.
 */
#ifndef SHAI_STUB_REQUESTS_H
#define SHAI_STUB_REQUESTS_H

#include "stub.h"

/*
 * Handles a request of the session. Writes to answer and second. The request's
 * descriptors stay the caller's.
 */
enum stub_outcome stub_handle(struct stub *stub, const struct stub_record *request,
    struct stub_record *answer, struct stub_record *second);

/*
 * Opens a file for the session. directory is -1, or the directory that path is
 * relative to. Returns a descriptor with only the rights that the session may have,
 * or -1 with errno, which is never an error for which the kernel would send a signal.
 */
int stub_open(struct stub *stub, int directory, const char *path, int flags, uint32_t mode);

/*
 * Asks whether the session may write to a number now. Returns the descriptor to write
 * to, which stays the stub's, or -1 with errno, as for stub_open.
 */
int stub_may_write(struct stub *stub, int number);

#endif
