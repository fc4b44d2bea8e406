/* SPDX-License-Identifier: BSD-2-Clause */
#include "queue.h"

#include <string.h>

#include "limits.h"

/* The entry of an address's network, a new one if it has none. */
static uint16_t
network_of(struct queue *queue, const uint8_t address[SHAI_ADDRESS_SIZE])
{
	uint8_t wanted[SHAI_ADDRESS_SIZE];
	size_t room = queue->networks;

	limits_network(address, wanted);
	for (size_t i = 0; i < queue->networks; i++) {
		if (memcmp(queue->network[i].address, wanted, sizeof(wanted)) == 0)
			return (uint16_t)i;
		if (queue->network[i].count == 0)
			room = i;
	}
	if (room == queue->networks)
		queue->networks++;
	queue->network[room].count = 0;
	memcpy(queue->network[room].address, wanted, sizeof(wanted));
	return (uint16_t)room;
}

static struct queued
remove_entry(struct queue *queue, size_t index)
{
	struct queued removed = queue->entry[index];

	queue->network[removed.network].count--;
	queue->count--;
	memmove(&queue->entry[index], &queue->entry[index + 1],
	    (queue->count - index) * sizeof(queue->entry[0]));
	if (queue->count == 0)
		queue->networks = 0;
	return removed;
}

bool
queue_add(struct queue *queue, int connection, const uint8_t address[SHAI_ADDRESS_SIZE],
    size_t limit, struct queued *out)
{
	struct queued *added = &queue->entry[queue->count++];
	uint16_t most = network_of(queue, address);
	size_t latest = queue->count - 1;

	*added = (struct queued){.connection = connection, .network = most};
	memcpy(added->address, address, sizeof(added->address));
	queue->network[most].count++;
	if (queue->count <= limit)
		return false;
	for (size_t i = 0; i < queue->networks; i++)
		if (queue->network[i].count > queue->network[most].count)
			most = (uint16_t)i;
	while (queue->entry[latest].network != most)
		latest--;
	*out = remove_entry(queue, latest);
	return true;
}

bool
queue_take(struct queue *queue, queue_usage *usage, const void *context, struct queued *out)
{
	bool known[SHAI_WAITING_MAX + 1] = {false};
	uint32_t least = UINT32_MAX;
	size_t first = queue->count;

	/* Few networks use a worker, so this ends soon. */
	for (size_t i = 0; i < queue->count && least > 0; i++) {
		uint16_t network = queue->entry[i].network;
		uint32_t used;

		if (known[network])
			continue;
		known[network] = true;
		used = usage(context, queue->network[network].address);
		if (used < least) {
			least = used;
			first = i;
		}
	}
	if (first == queue->count)
		return false;
	*out = remove_entry(queue, first);
	return true;
}
