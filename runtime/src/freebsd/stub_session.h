/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stub's part in a session's life: its user, its monitor, its perimeter.
 */
#ifndef SHAI_STUB_SESSION_H
#define SHAI_STUB_SESSION_H

#include "stub.h"

/* Handles SHAI_STUB_ACCEPT. */
enum stub_outcome stub_accept(
    struct stub *stub, uint64_t sequence, struct stub_record *answer, struct stub_record *second);

/* Passes on a request that the monitor answers. */
enum stub_outcome stub_relay(struct stub *stub, const struct stub_record *request,
    const struct shai_header *header, struct stub_record *answer);

/* Reports whether the sandbox has ended the session. */
bool stub_ended(const struct stub *stub);

/*
 * Closes and forgets everything of the session, after the session itself has ended.
 * The socket that tells the sandbox so is closed last. Returns whether there was a
 * user.
 */
bool stub_end_session(struct stub *stub);

#endif
