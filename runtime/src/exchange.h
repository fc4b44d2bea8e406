/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sends and receives records and descriptors over the monitor's socket. Does not
 * interpret the records.
 */
#ifndef SHAI_EXCHANGE_H
#define SHAI_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

/*
 * One received record. bytes points into a buffer that the next receive reuses.
 * Descriptors are close-on-exec and belong to the message's owner. A descriptor that
 * was taken out is replaced by -1.
 */
struct shai_message {
	struct shai_bytes bytes;
	size_t descriptor_count;
	int descriptor[SHAI_DESCRIPTORS_MAX];
};

/* Returns the sequence number for the next request; never 0, never repeated. */
uint64_t shai_exchange_sequence(void);

/* Reports whether descriptor 3 is a monitor's socket. */
bool shai_exchange_present(void);

/* Sends one record. Returns 0, or -1 after shai_fail. */
int shai_exchange_send(const void *record, size_t length);

/*
 * Receives one record, and waits for it. Returns 0, or -1 after shai_fail, without
 * keeping a descriptor: ECONNRESET if the monitor is gone, EPROTO for a record longer
 * than SHAI_WIRE_MAX or with more descriptors than SHAI_DESCRIPTORS_MAX (or than this
 * process can hold).
 */
int shai_exchange_receive(struct shai_message *message);

/* Takes descriptor i out of a message. */
int shai_message_take(struct shai_message *message, size_t i);

/* Closes the descriptors that were not taken out. */
void shai_message_discard(struct shai_message *message);

/*
 * Refuses a record: closes its descriptors and ends the connection, because its
 * sender can no longer be trusted. Returns -1 after shai_fail(EPROTO).
 */
int shai_exchange_refuse(struct shai_message *message, const char *record, const char *problem);

#endif
