/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Serves the front end: a thread for each slot.
 */
#ifndef SYSE_ENGINE_SERVICE_H
#define SYSE_ENGINE_SERVICE_H

#include <stdint.h>

#include "answers.h"
#include "documents.h"

/* Faults that can be injected, to show that they are stopped later. */
enum fault {
	FAULT_NONE = 0,
	FAULT_IGNORE_ATTRIBUTES,  /* owner and visibility are ignored */
	FAULT_TEXT_INSTEAD_OF_IDS /* a document's beginning is written where conduits belong */
};

struct service {
	struct documents documents;
	const char *queries; /* path of the pipes, without "/" and the slot */
	struct channel_paths channels;
	unsigned slots; /* 1..SHAI_FD_CHANNEL_COUNT */
	uint64_t busy_cycles;
	enum fault fault;
};

/*
 * Serves until every slot's pipe has ended. Returns how many queries were answered, or -1
 * if some pipe or channel could not be used: the log says which; the others were served.
 */
long service_run(const struct service *service);

#endif
