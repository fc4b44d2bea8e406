/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calling process's own mappings, as /proc/self/maps lists them, proc_pid_maps(5).
 * Nothing here allocates: the list stays true while it is read.
 */
#ifndef SHAI_LINUX_MAPPINGS_H
#define SHAI_LINUX_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shai_mapping {
	uint64_t start, end; /* addresses, multiples of the page size */
	bool writable;
	bool shared;
	bool stack; /* of the first thread: it grows */
};

/* Receives one mapping. Returns false to end the reading. */
typedef bool shai_mapping_visitor(void *context, const struct shai_mapping *mapping);

/*
 * Calls the visitor for each mapping, in ascending order. Returns 0 after the last one or
 * once the visitor has returned false, or -1 with errno: EPROTO if the list is malformed,
 * others see open(2) and read(2).
 */
int shai_mappings_visit(shai_mapping_visitor *visit, void *context);

/*
 * The same for a list that a descriptor contains; the caller closes it. A line is at most
 * SHAI_MAPPING_LINE_MAX bytes long.
 */
#define SHAI_MAPPING_LINE_MAX 8192
int shai_mappings_read(int list, shai_mapping_visitor *visit, void *context);

#endif
