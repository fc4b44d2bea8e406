/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Principals' public keys, for mode baseline only: there nobody but the worker
 * verifies a login. The zygote loads them once; workers only look.
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
 * hexadecimal digits], ...]} from a file of one JSON object per line; other lines
 * are skipped unparsed. Returns false with what is wrong, and where, in reason.
 */
bool keys_load(struct keys *keys, const char *path, char *reason, size_t reason_size);

void keys_release(struct keys *keys);

/* The principal's key, or NULL. */
const struct key *keys_find(const struct keys *keys, const char *principal);

/*
 * Whether the signature over shai_signed_text(nonce, principal) is the
 * principal's. Otherwise reason names the cause.
 */
bool keys_verify(const struct keys *keys, const char *principal,
    const uint8_t nonce[SHAI_NONCE_SIZE], const uint8_t signature[SHAI_SIGNATURE_SIZE],
    char *reason, size_t reason_size);

#endif
