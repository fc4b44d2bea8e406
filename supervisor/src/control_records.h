/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Decodes the monitor's control records. Pure: the result points into the message.
 */
#ifndef SUPERVISOR_CONTROL_RECORDS_H
#define SUPERVISOR_CONTROL_RECORDS_H

#include "bytes.h"
#include "shai_supervision.h"

/* One record; of the union, the member of its type. It lives as long as its message. */
struct control {
	enum shai_control_type type;
	union {
		const struct shai_control_settings *settings;
		const struct shai_control_slot *slot;
		const struct shai_control_key *key;
		const struct shai_control_regions *regions;
		const struct shai_control_set *set;
		const struct shai_control_forget *forget;
		const struct shai_control_mode *mode;
		const struct shai_control_fence *fence;
		const struct shai_control_end *end;
		const struct shai_control_bind *bind;
		const struct shai_control_relay *relay;
		const struct shai_control_credits *credits;
		const struct shai_control_store *store;
		const struct shai_control_sealed *sealed;
		const struct shai_control_compared *compared;
	};
	/* What follows the record's head, if something does. */
	const struct shai_control_region *region; /* regions->count */
	const uint32_t *classes;                  /* set->class_count, ascending */
	struct bytes relayed;                     /* for the worker, with the descriptors */
};

/*
 * Decodes a message. Returns NULL, or a constant part of a sentence that names what is
 * wrong with it; *out must then not be used. Every size, count, flag, number, text and
 * reserved field is checked, and that as many descriptors came as the type has.
 */
const char *control_decode(struct bytes message, struct control *out);

#endif
