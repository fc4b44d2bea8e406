/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records in the stub's form, and the sockets that carry them.
 */
#ifndef SHAI_STUB_RECORD_H
#define SHAI_STUB_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "requests.h"

/* One record. Its holder owns the descriptors. */
struct stub_record {
	size_t length; /* 0: there is no record */
	size_t descriptor_count;
	int descriptor[SHAI_BATCH_MAX];
	uint8_t bytes[SHAI_WIRE_MAX];
};

struct shai_bytes stub_bytes(const struct stub_record *record);

/* Makes a record of bytes, without descriptors. */
void stub_put(struct stub_record *out, const void *bytes, size_t length);

/* Adds a descriptor. The record takes it over. */
void stub_put_descriptor(struct stub_record *out, int descriptor);

/*
 * Makes a shai_answer of a call's result. A negative result means failure, with
 * errno.
 */
void stub_put_answer(struct stub_record *out, uint64_t sequence, long result);

/* Receives one record. Returns 1, 0 if the other end is gone, or -1 with errno. */
int stub_receive(int socket, struct stub_record *record);

/* Sends one record and closes its descriptors. Returns 0, or -1 with errno. */
int stub_send(int socket, struct stub_record *record);

/* Closes a record's descriptors. */
void stub_discard(struct stub_record *record);

/*
 * Makes a pair of sockets, close-on-exec, for records of any size. Returns 0, or -1
 * with errno.
 */
int stub_make_mailbox(int ends[2]);

/*
 * Moves a descriptor above another number. Returns the new number, or closes it and
 * returns -1 with errno.
 */
int stub_aside(int descriptor, int above);

#endif
