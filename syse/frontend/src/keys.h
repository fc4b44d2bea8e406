/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Principals' public keys, for mode baseline only, in which the worker itself
 * verifies logins. The zygote loads the keys once; workers only read them.
 */
#ifndef SYSE_KEYS_H
#define SYSE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shai.h"

#define KEYS_PUBLIC_SIZE 32 /* Ed25519 */

struct key {
	const char *principal;
	uint8_t public[KEYS_PUBLIC_SIZE];
};

struct keys {
	struct key *key; /* sorted by principal, each once */
	size_t count;
};

/*
 * Loads the facts {"conduit":"population","says":"key","tuples":[[principal, 64
 * hexadecimal digits], ...]} from a file with one JSON object per line. Other lines
 * are skipped without parsing. Returns false with the error and its position in
 * reason.
 */
bool keys_load(struct keys *keys, const char *path, char *reason, size_t reason_size);

void keys_release(struct keys *keys);

/* Returns the principal's key, or NULL. */
const struct key *keys_find(const struct keys *keys, const char *principal);

/*
 * Reports whether the signature of shai_signed_text(session, principal) is the
 * principal's. Otherwise reason is set.
 */
bool keys_verify(const struct keys *keys, const struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE], char *reason, size_t reason_size);

#endif
