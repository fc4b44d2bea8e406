/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a worker may say to its supervisor. Workers run code that may have been taken
 * over: nothing of a message is trusted. Pure: the result points into the message.
 */
#ifndef SUPERVISOR_WORKER_RECORDS_H
#define SUPERVISOR_WORKER_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"
#include "shai_supervision.h"

/* One message; of the union, the member of its type. It lives as long as its bytes. */
struct worker_record {
	enum shai_type type;
	uint64_t sequence;
	union {
		const struct shai_authenticate *authenticate;
		const struct shai_open *open;
		const struct shai_write *write; /* its content follows */
		const struct shai_choices *choices;
		const struct shai_choose *choose;
		const struct shai_reset *reset;
		const struct shai_header *forwarded; /* a record of a channel follows */
	};
};

/* The size of the largest message that a worker may send. */
#define WORKER_MESSAGE_MAX (sizeof(struct shai_write) + SHAI_CONTENT_MAX)

/* What a session's worker has said so far. All zero at the session's beginning. */
struct worker_conversation {
	bool bound;                       /* set by the session, once a user has logged in */
	bool gated;                       /* the same: its worker reads its channel itself */
	uint8_t messages[SHAI_RESET + 1]; /* by type, of those whose number is limited */
};

/*
 * Decodes a worker's next message, if it may say this now, and counts it. Returns NULL,
 * or a constant part of a sentence that names what is wrong; the session must then end.
 */
const char *worker_decode(
    struct bytes message, struct worker_conversation *conversation, struct worker_record *out);

/* Counters that a worker said, limited to what is possible in the session's seconds. */
struct shai_counters worker_counters(const struct shai_reset *reset, uint64_t seconds);

#endif
