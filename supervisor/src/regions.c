/* SPDX-License-Identifier: BSD-2-Clause */
#include "regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
longest_first(const void *left, const void *right)
{
	const struct shai_control_region *a = left, *b = right;

	if (a->bits != b->bits)
		return a->bits > b->bits ? -1 : 1;
	return memcmp(a->address, b->address, SHAI_ADDRESS_SIZE);
}

static void
drop(struct region_table *table)
{
	free(table->entry);
	*table = (struct region_table){0};
}

static int
extend(struct region_table *table, const struct shai_control_region *entries, size_t count)
{
	struct shai_control_region *larger;

	if (count == 0)
		return 0;
	larger = reallocarray(table->entry, table->count + count, sizeof(*larger));
	if (larger == NULL)
		return -1;
	memcpy(larger + table->count, entries, count * sizeof(*entries));
	table->entry = larger;
	table->count += count;
	return 0;
}

int
regions_apply(struct regions *regions, const struct shai_control_regions *record,
    const struct shai_control_region *entries)
{
	if (record->first != 0) {
		drop(&regions->coming);
		regions->begun = true;
	}
	if (!regions->begun) {
		errno = EPROTO;
		return -1;
	}
	if (extend(&regions->coming, entries, record->count) != 0)
		return -1;
	if (record->last != 0) {
		drop(&regions->current);
		regions->current = regions->coming;
		regions->coming = (struct region_table){0};
		regions->begun = false;
		if (regions->current.count > 0)
			qsort(regions->current.entry, regions->current.count,
			    sizeof(*regions->current.entry), longest_first);
	}
	return 0;
}

static void
cut(uint8_t address[SHAI_ADDRESS_SIZE], uint32_t bits)
{
	for (uint32_t i = 0; i < SHAI_ADDRESS_SIZE; i++) {
		uint32_t kept = bits > 8 * i ? bits - 8 * i : 0;

		if (kept < 8)
			address[i] &= (uint8_t)(0xff00 >> kept);
	}
}

/* Returns the first entry after those with as many bits as entry i. */
static size_t
next_length(const struct region_table *table, size_t i)
{
	size_t low = i + 1, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->entry[middle].bits == table->entry[i].bits)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *
regions_find(const struct regions *regions, const uint8_t address[SHAI_ADDRESS_SIZE])
{
	const struct region_table *table = &regions->current;
	struct shai_control_region wanted;
	size_t next;

	memcpy(wanted.address, address, sizeof(wanted.address));
	for (size_t i = 0; i < table->count; i = next) {
		const struct shai_control_region *found;

		next = next_length(table, i);
		wanted.bits = table->entry[i].bits;
		cut(wanted.address, wanted.bits); /* ever shorter */
		found = bsearch(
		    &wanted, &table->entry[i], next - i, sizeof(*table->entry), longest_first);
		if (found != NULL)
			return found->region;
	}
	return "";
}

void
regions_free(struct regions *regions)
{
	drop(&regions->current);
	drop(&regions->coming);
}
