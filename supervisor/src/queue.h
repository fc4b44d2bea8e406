/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections that wait for a worker. A network (limits_network) that connects more often than
 * others does not come more often: of two networks the one that uses fewer workers is next. When
 * the queue is full, the network with the most connections in it loses its latest one.
 * Needs no memory but its own.
 */
#ifndef SUPERVISOR_QUEUE_H
#define SUPERVISOR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "shai_supervision.h"

struct queued {
	int connection;
	uint8_t address[SHAI_ADDRESS_SIZE];
	uint16_t network; /* the queue's */
};

struct queued_network {
	uint8_t address[SHAI_ADDRESS_SIZE];
	uint16_t count; /* of its connections in the queue; 0: the entry is free */
};

/* All zero: empty. There is room for one more than may wait. */
struct queue {
	size_t count;
	size_t networks;                           /* entries of network that are or were used */
	struct queued entry[SHAI_WAITING_MAX + 1]; /* in the order of arrival */
	struct queued_network network[SHAI_WAITING_MAX + 1];
};

/*
 * Adds a connection to a queue in which at most limit may wait, 1..SHAI_WAITING_MAX. Returns
 * whether one has to leave for it, perhaps the new one: this is *out, which the caller closes.
 */
bool queue_add(struct queue *queue, int connection, const uint8_t address[SHAI_ADDRESS_SIZE],
    size_t limit, struct queued *out);

/* How many workers a network uses. */
typedef uint32_t queue_usage(const void *context, const uint8_t network[SHAI_ADDRESS_SIZE]);

/*
 * Takes the next connection out: of the networks that use the fewest workers, the first that
 * came. Returns false if there is none.
 */
bool queue_take(struct queue *queue, queue_usage *usage, const void *context, struct queued *out);

#endif
