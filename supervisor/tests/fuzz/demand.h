/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUPERVISOR_DEMAND_H
#define SUPERVISOR_DEMAND_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a decoder accepts keeps the promises that its callers rely on. */
static inline void
demand(int condition)
{
	if (!condition)
		abort();
}

/* A copy of its own, so that a byte read beyond its end is found. zeros follow the input. */
static inline void *
message_copy(const uint8_t *data, size_t size, size_t zeros)
{
	uint8_t *copy = calloc(1, size + zeros > 0 ? size + zeros : 1);

	if (copy == NULL)
		abort();
	if (size > 0)
		memcpy(copy, data, size);
	return copy;
}

#endif
