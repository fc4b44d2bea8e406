/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a session asks of its stub, and what it gets. All decisions of the stub are here.
 */
#ifndef SHAI_STUB_REQUESTS_H
#define SHAI_STUB_REQUESTS_H

#include "stub.h"

/*
 * Does what a record of the session asks for. answer and second are written to;
 * the request's descriptors stay the caller's.
 */
enum stub_outcome stub_handle(struct stub *stub, const struct stub_record *request,
    struct stub_record *answer, struct stub_record *second);

/*
 * Opens a file for the session; directory is -1, or what path is relative to.
 * Returns a descriptor with only the rights that the session may have, or -1 with
 * errno, which is never one that the kernel would signal.
 */
int stub_open(struct stub *stub, int directory, const char *path, int flags, uint32_t mode);

/*
 * Asks whether a number may be written to now. Returns the descriptor to do it
 * with, which stays the stub's, or -1 with errno, as of stub_open.
 */
int stub_may_write(struct stub *stub, int number);

#endif
