/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Decodes records from the monitor and from descriptor channels. Pure: bytes in,
 * structures out. The form of the input is not trusted: every length, version, size,
 * type, text and reserved field is checked before it is used.
 *
 * Each decoder returns NULL, or a constant part of a sentence that names what is wrong
 * with the record; its output is then unspecified and must not be used. Records need no
 * alignment.
 */
#ifndef SHAI_RECORDS_H
#define SHAI_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "shai_wire.h"

/* The number of capabilities that fit into one record. */
#define SHAI_TABLE_MAX                                                                             \
	((SHAI_WIRE_MAX - sizeof(struct shai_registered)) / sizeof(struct shai_capability))

/* The bytes of one received record. */
struct shai_bytes {
	const uint8_t *start;
	size_t length;
};

const char *shai_decode_registered(struct shai_bytes record, uint64_t sequence,
    struct shai_registered *head, struct shai_capability table[SHAI_TABLE_MAX]);

/* SHAI_CONNECTED answers no request: its sequence is ignored. */
const char *shai_decode_connected(struct shai_bytes record, struct shai_connected *out);

const char *shai_decode_bound(struct shai_bytes record, uint64_t sequence, struct shai_bound *head,
    uint32_t classes[SHAI_CLASSES_MAX]);

/* After a problem, classes may hold anything. */
const char *shai_decode_grown(
    struct shai_bytes record, struct shai_grown *head, uint32_t classes[SHAI_CLASSES_MAX]);

/* asked is the count in the request that this record answers. */
const char *shai_decode_opened(
    struct shai_bytes record, uint64_t sequence, uint32_t asked, struct shai_opened *out);

const char *shai_decode_written(
    struct shai_bytes record, uint64_t sequence, struct shai_written *out);

/* The policies that follow the head become choice, of which head->count are set. */
const char *shai_decode_offered(struct shai_bytes record, uint64_t sequence,
    struct shai_offered *head, char choice[SHAI_OFFERED_MAX][SHAI_POLICY_MAX]);

const char *shai_decode_chosen(
    struct shai_bytes record, uint64_t sequence, struct shai_chosen *out);

/* *count becomes the number of conduits, 0..SHAI_BATCH_MAX. */
const char *shai_decode_transfer(
    struct shai_bytes record, struct shai_transfer *out, size_t *count);

/*
 * Begins every decoder: checks that the header is correct for this type, and that
 * size is the record's length and at least head_size. Copies the head.
 */
const char *shai_decode_head(struct shai_bytes record, int type, void *head, size_t head_size);

/* As shai_decode_head, for a record that is nothing but its head and answers a request. */
const char *shai_decode_reply(
    struct shai_bytes record, int type, uint64_t sequence, void *out, size_t size);

/* Fills in a record's header. type is one of the enumerations of types. */
void shai_encode_header(struct shai_header *header, int type, size_t size, uint64_t sequence);

/*
 * Copies text into a field of a record, padded with NULs. Returns 0, or -1 if text
 * and its NUL do not fit.
 */
int shai_encode_text(char *field, size_t size, const char *text);

#endif
