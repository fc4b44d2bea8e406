/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_COUNTERS_H
#define SHAI_COUNTERS_H

#include <stdint.h>

#include "shai_wire.h"

/* Returns the counters to add to; never NULL. */
struct shai_counters *shai_counters_writable(void);

/* Adds to a counter: shai_count(transfers, 3). */
#define shai_count(field, amount)                                                                  \
	((void)__atomic_fetch_add(                                                                 \
	    &shai_counters_writable()->field, (uint64_t)(amount), __ATOMIC_RELAXED))

#endif
