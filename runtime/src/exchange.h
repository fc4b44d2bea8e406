/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records and descriptors over the monitor's socket. Says nothing about what
 * records mean.
 */
#ifndef SHAI_EXCHANGE_H
#define SHAI_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

/*
 * One received record. bytes points into a buffer that the next receive reuses.
 * Descriptors are close-on-exec and belong to whoever holds the message; those
 * taken out are replaced by -1.
 */
struct shai_message {
	struct shai_bytes bytes;
	size_t descriptor_count;
	int descriptor[SHAI_BATCH_MAX];
};

/* The sequence number for the next request; never 0, never repeated. */
uint64_t shai_exchange_sequence(void);

/* Whether descriptor 3 is a monitor's socket. */
bool shai_exchange_present(void);

/* Sends one record. Returns 0, or -1 after shai_fail. */
int shai_exchange_send(const void *record, size_t length);

/*
 * Receives one record, waiting for it. Returns 0, or -1 after shai_fail with no
 * descriptor kept: ECONNRESET when the monitor is gone, EPROTO for a record
 * longer than SHAI_WIRE_MAX or with more descriptors than SHAI_BATCH_MAX (or than
 * this process can hold).
 */
int shai_exchange_receive(struct shai_message *message);

/* Takes the i-th descriptor out of a message. */
int shai_message_take(struct shai_message *message, size_t i);

/* Closes the descriptors that were not taken out. */
void shai_message_discard(struct shai_message *message);

/*
 * Refuses a record: closes its descriptors and ends the connection, for its
 * sender has lost our trust. Returns -1 after shai_fail(EPROTO).
 */
int shai_exchange_refuse(struct shai_message *message, const char *record, const char *problem);

#endif
