/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUPERVISOR_BYTES_H
#define SUPERVISOR_BYTES_H

#include <stddef.h>

/* One received message and how many descriptors came with it. */
struct bytes {
	const void *start; /* aligned to 8 */
	size_t length;
	size_t descriptors;
};

#endif
