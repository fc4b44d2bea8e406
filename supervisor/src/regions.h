/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The regions of addresses: the longest prefix that covers an address names its region.
 */
#ifndef SUPERVISOR_REGIONS_H
#define SUPERVISOR_REGIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "shai_supervision.h"

struct region_table {
	struct shai_control_region *entry; /* sorted: longer prefixes first, then by address */
	size_t count;
};

/* All zero: no regions are known. */
struct regions {
	struct region_table current;
	struct region_table coming; /* becomes current with its last record */
	bool begun;                 /* the first record of coming was there */
};

/*
 * Obeys a record with its entries. Returns 0, or -1 with errno: ENOMEM, or EPROTO for a
 * record that continues a table which was not begun.
 */
int regions_apply(struct regions *regions, const struct shai_control_regions *record,
    const struct shai_control_region *entries);

/* Returns an address's region, empty if it has none. It stays valid until the next record. */
const char *regions_find(const struct regions *regions, const uint8_t address[SHAI_ADDRESS_SIZE]);

void regions_free(struct regions *regions);

#endif
