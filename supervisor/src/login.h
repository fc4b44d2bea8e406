/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Verifies who a user is. Reasons are written for users, and the same as the monitor's. The
 * program has called sodium_init.
 */
#ifndef SUPERVISOR_LOGIN_H
#define SUPERVISOR_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "keys.h"
#include "shai_supervision.h"

#define LOGIN_TEXT_MAX (sizeof(SHAI_SIGNED_PREFIX) + 3 * SHAI_NAME_MAX + 2 * SHAI_NONCE_SIZE)

/* What the signed text of a connection consists of, except for the principal. */
struct login {
	const char *service;
	const char *pipeline;
	const uint8_t *nonce; /* SHAI_NONCE_SIZE bytes */
};

/*
 * Writes the text that a client signs, without a NUL. Returns its length, or 0 if a name
 * is empty or has a line break, with which it could imitate another line.
 */
size_t login_text(const struct login *login, const char *principal, char out[LOGIN_TEXT_MAX]);

/*
 * Returns the principal that the request proves to come from; or NULL, with the reason of
 * the refusal.
 */
struct principal *login_verify(const struct login *login, const struct keys *keys,
    const struct shai_authenticate *request, char reason[SHAI_REASON_MAX]);

/* The reason for refusing a user to a session that has one. */
#define LOGIN_BOUND "the session already has a user; open another connection for another user"

#endif
