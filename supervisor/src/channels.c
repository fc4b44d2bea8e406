/* SPDX-License-Identifier: BSD-2-Clause */
#include "channels.h"

#include <stddef.h>

#include "shai_supervision.h"

const char *
channel_check(struct bytes record)
{
	const struct shai_transfer *transfer = record.start;
	const size_t head = offsetof(struct shai_transfer, conduit);

	if (record.descriptors > 0)
		return "a transfer with descriptors";
	if (record.length < head)
		return "a transfer shorter than its head";
	if (record.length > sizeof(*transfer))
		return "a transfer of more conduits than it can have";
	if ((record.length - head) % sizeof(transfer->conduit[0]) != 0)
		return "a transfer with a fraction of a conduit id";
	if (transfer->reserved != 0)
		return "a transfer with something in its reserved field";
	return NULL;
}
