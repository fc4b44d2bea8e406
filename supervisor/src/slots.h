/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Slots: what one session after the other uses, and what is cleaned between two.
 */
#ifndef SUPERVISOR_SLOTS_H
#define SUPERVISOR_SLOTS_H

#include "supervisor.h"

/* Prepares the entries of as many slots as the settings say, none of which is present yet. */
void slots_begin(struct supervisor *s);

/*
 * Obeys a record, and takes its descriptors over. Returns 0, or -1 if the slot is there
 * already, or does not exist.
 */
int slot_define(
    struct supervisor *s, const struct shai_control_slot *record, struct descriptors *ends);

/* Whether the slot is there, and nothing of its last session is left. */
bool slot_is_free(const struct supervisor *s, uint32_t number);

/*
 * The key-value connection of a session, authenticated as its set's user. It stays the
 * slot's. Returns -1 if it is not ready yet, or the session has ended because there is none.
 */
int slot_store(struct supervisor *s, struct session *session);

/* Cleans the slot of a session that is over. It becomes free when this is done. */
void slot_clean(struct supervisor *s, uint32_t number);

/* Goes on with the key-value connection of a slot. Returns when to call it again at the latest. */
int64_t slot_tend(struct supervisor *s, uint32_t number, int64_t now);

#endif
