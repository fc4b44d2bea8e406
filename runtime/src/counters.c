/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

#include "shai.h"

static struct shai_counters counters;

struct shai_counters *
shai_counters_writable(void)
{
	return &counters;
}

const struct shai_counters *
shai_counters(void)
{
	return &counters;
}
