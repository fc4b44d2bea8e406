/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_RESERVATION_H
#define SHAI_RESERVATION_H

#include <stddef.h>

/* What shai_reserve was told, or the defaults that shai.h names. In bytes. */
struct shai_reservation {
	size_t heap;
	size_t stack;
};

/* Returns the reservation of this task; never NULL. */
const struct shai_reservation *shai_reservation(void);

#endif
