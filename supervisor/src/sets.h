/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The capability sets of a task's instances, by the values of their parameters.
 */
#ifndef SUPERVISOR_SETS_H
#define SUPERVISOR_SETS_H

#include <stdbool.h>
#include <stddef.h>

#include "shai_supervision.h"

/* What an instance may do. It does not change while somebody holds it. */
struct set {
	char principal[SHAI_NAME_MAX]; /* empty: instances do not differ by user */
	char region[SHAI_NAME_MAX];    /* empty: instances do not differ by region */
	char instance[SHAI_NAME_MAX];
	uint32_t flags;  /* SHAI_SET_* */
	int64_t expires; /* nanoseconds since 1970; 0: never */
	int64_t ends;    /* of its sessions, likewise */
	char kv_user[SHAI_NAME_MAX];
	char kv_password[SHAI_NAME_MAX];
	size_t holders; /* sessions, and the table */
	size_t class_count;
	uint32_t classes[]; /* ascending */
};

/* All zero: no sets. */
struct sets {
	void *tree; /* of struct set, by principal and region; the monitor knows which */
};

/*
 * Obeys a record with its classes. A former set of the same principal and region leaves
 * the table. Returns 0, or -1 if there is no memory.
 */
int sets_apply(struct sets *sets, const struct shai_control_set *record, const uint32_t *classes);

/* Takes a set from the table. Who holds it keeps it. */
void sets_forget(struct sets *sets, const struct shai_control_forget *record);

/*
 * Returns a set that has not expired at the time now (nanoseconds since 1970), or NULL.
 * An expired one stays in the table until the monitor replaces it. The caller holds what is
 * returned, and calls set_release.
 */
struct set *sets_hold(
    const struct sets *sets, const char *principal, const char *region, int64_t now);
void set_release(struct set *set); /* set may be NULL */

/* Reports whether a set, held or forgotten, is one of these values. */
bool set_named(const struct set *set, const char *principal, const char *region);

bool set_has_class(const struct set *set, uint32_t number);

/* Empties the table. */
void sets_free(struct sets *sets);

#endif
