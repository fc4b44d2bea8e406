/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "shai.h"

static struct shai_counters own;
static struct shai_counters *counters = &own;

void
shai_counters_map(void)
{
	struct stat status;
	void *page;

	/* Counting in a page that is shorter than the structure would raise SIGBUS. */
	if (counters != &own || fstat(SHAI_FD_COUNTERS, &status) != 0 ||
	    status.st_size < (off_t)sizeof(own))
		return;
	page = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, SHAI_FD_COUNTERS, 0);
	if (page != MAP_FAILED)
		counters = page;
}

struct shai_counters *
shai_counters_writable(void)
{
	return counters;
}

const struct shai_counters *
shai_counters(void)
{
	return counters;
}
