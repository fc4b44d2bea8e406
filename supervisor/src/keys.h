/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The principals that may log in, with their public keys and live sessions.
 */
#ifndef SUPERVISOR_KEYS_H
#define SUPERVISOR_KEYS_H

#include <stdbool.h>

#include "shai_supervision.h"

struct principal {
	char name[SHAI_NAME_MAX];
	uint8_t key[SHAI_KEY_SIZE];
	bool present;      /* false: removed, and kept while it has sessions */
	uint64_t version;  /* counts changes of the key, and its removals */
	uint32_t sessions; /* live ones */
};

/* All zero: no principals. */
struct keys {
	void *tree; /* of struct principal, by name */
};

/* Obeys a record. Returns 0, or -1 if there is no memory. */
int keys_apply(struct keys *keys, const struct shai_control_key *record);

/* Returns a principal that may log in, or NULL. It stays valid until the next record. */
struct principal *keys_find(const struct keys *keys, const char *name);

/*
 * Counts a session of a principal that keys_find returned; the principal stays valid
 * until keys_leave. Returns false if limit sessions are live; 0 is no limit.
 */
bool keys_enter(struct principal *principal, uint32_t limit);
void keys_leave(struct keys *keys, struct principal *principal);

/* Frees everything. No session may be left. */
void keys_free(struct keys *keys);

#endif
