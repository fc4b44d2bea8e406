/* SPDX-License-Identifier: BSD-2-Clause */
#include "reservation.h"

#include "shai.h"

static struct shai_reservation reservation = {SHAI_RESERVE_HEAP, SHAI_RESERVE_STACK};

void
shai_reserve(size_t heap, size_t stack)
{
	reservation.heap = heap;
	reservation.stack = stack;
}

const struct shai_reservation *
shai_reservation(void)
{
	return &reservation;
}
