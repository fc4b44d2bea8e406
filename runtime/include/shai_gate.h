/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The gate: how a sealed worker (shai_rollback.h) reads its session's channel. It is a function
 * in the page of the roll-back code:
 *
 *	int64_t gate(int channel, uint32_t query)
 *
 * It receives one record into the buffer, and lets nothing through but a transfer that answers
 * the query, with numbers of documents that the grant covers. It returns
 *
 *	> 0           the transfer's length; it begins at SHAI_GATE_RECORD in the buffer
 *	0             the record is empty, or the sender is gone
 *	-EINPROGRESS  the supervisor has got the record, and decides on it: what it permits
 *	              comes as SHAI_TRANSFER on SHAI_FD_MONITOR
 *	-EAGAIN       there is no record, or it was dropped
 *	-errno        it cannot be received, or not be passed to the supervisor
 *
 * It never waits. In all cases but the first the buffer's record is zero afterwards. The
 * header may be included by assembly.
 */
#ifndef SHAI_GATE_H
#define SHAI_GATE_H

#define SHAI_GATE 0x800          /* offset in the page of the roll-back code: its entry */
#define SHAI_GATE_RECEIVED 0x840 /* offset of the instruction after its recvfrom */

#define SHAI_GATE_BUFFER 0x200000002000 /* private; it is rolled back as all memory is */
#define SHAI_GATE_BUFFER_SIZE 0x1000
#define SHAI_GATE_RECORD 16      /* offset in the buffer: a header comes before the record */
#define SHAI_GATE_RECORD_MAX 264 /* bytes: sizeof(struct shai_transfer) */

#define SHAI_GATE_HEAD 0x00440004 /* of what it passes on: SHAI_WIRE_VERSION, SHAI_TRANSFER */
#define SHAI_GATE_SUPERVISOR 3    /* SHAI_FD_MONITOR, which it passes it on to */

/* The worker maps these read-only, from SHAI_FD_GRANT and SHAI_FD_CLASSES. */
#define SHAI_GATE_GRANT 0x200000004000
#define SHAI_GATE_GRANT_SIZE 0x9000
#define SHAI_GATE_CLASSES 0x201000000000
#define SHAI_GATE_CLASSES_SIZE 0x4000000 /* the file may be shorter, and may grow */

#define SHAI_GRANT_BOUND 1     /* the session has a user, and reads its channel by the gate */
#define SHAI_GRANT_UNCHECKED 2 /* whatever documents a transfer names, it passes (mode audit) */

/* Offsets in struct shai_grant. */
#define SHAI_GRANT_FLAGS 0x00
#define SHAI_GRANT_CONDUIT_COUNT 0x04
#define SHAI_GRANT_CLASS_COUNT 0x08
#define SHAI_GRANT_CLASSES 0x10

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "shai_wire.h"

/* What a session may get through the gate. Only the supervisor can write it. */
struct shai_grant {
	uint32_t flags;                   /* SHAI_GRANT_*; 0 without a user */
	uint32_t conduit_count;           /* so many entries of the class table are there */
	uint32_t class_count;             /* 0..SHAI_CLASSES_MAX */
	uint32_t reserved;                /* 0 */
	uint32_t class[SHAI_CLASSES_MAX]; /* ascending */
};

static_assert(offsetof(struct shai_grant, flags) == SHAI_GRANT_FLAGS &&
		  offsetof(struct shai_grant, conduit_count) == SHAI_GRANT_CONDUIT_COUNT &&
		  offsetof(struct shai_grant, class_count) == SHAI_GRANT_CLASS_COUNT &&
		  offsetof(struct shai_grant, class) == SHAI_GRANT_CLASSES,
    "the gate reads it");
static_assert(sizeof(struct shai_grant) <= SHAI_GATE_GRANT_SIZE, "it fits");
static_assert(sizeof(struct shai_transfer) == SHAI_GATE_RECORD_MAX, "the gate's longest record");
static_assert(sizeof(struct shai_header) == SHAI_GATE_RECORD, "the gate puts one there");

#endif
#endif
