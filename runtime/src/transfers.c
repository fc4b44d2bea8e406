/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfers.h"

#include <string.h>

static struct {
	size_t length;
	uint8_t bytes[sizeof(struct shai_transfer)];
} kept[SHAI_TRANSFERS_KEPT];

static size_t oldest, count;

bool
shai_transfers_keep(struct shai_bytes record)
{
	struct shai_header header;
	size_t length, place;

	if (shai_decode_head(record, SHAI_TRANSFER, &header, sizeof(header)) != NULL)
		return false;
	length = record.length - sizeof(header);
	if (length == 0 || length > sizeof(kept[0].bytes))
		return false;
	place = (oldest + count) % SHAI_TRANSFERS_KEPT;
	if (count == SHAI_TRANSFERS_KEPT)
		oldest = (oldest + 1) % SHAI_TRANSFERS_KEPT;
	else
		count++;
	memcpy(kept[place].bytes, record.start + sizeof(header), length);
	kept[place].length = length;
	return true;
}

size_t
shai_transfers_take(void *out)
{
	size_t length;

	if (count == 0)
		return 0;
	length = kept[oldest].length;
	memcpy(out, kept[oldest].bytes, length);
	oldest = (oldest + 1) % SHAI_TRANSFERS_KEPT;
	count--;
	return length;
}
