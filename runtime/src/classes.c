/* SPDX-License-Identifier: BSD-2-Clause */
#include "classes.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shai_wire.h"

static const uint32_t *table;
static size_t table_count; /* conduits */

void
shai_classes_unmap(void)
{
	if (table != NULL)
		(void)munmap((void *)(uintptr_t)table, table_count * sizeof(table[0]));
	table = NULL;
	table_count = 0;
}

/* Maps the whole file. The monitor may extend it, but never shortens it. */
void
shai_classes_map(void)
{
	struct stat status;
	size_t count;
	void *mapping;

	if (fstat(SHAI_FD_CLASSES, &status) != 0 || !S_ISREG(status.st_mode))
		return;
	count = (size_t)status.st_size / sizeof(table[0]);
	if (count <= table_count)
		return;
	mapping = mmap(NULL, count * sizeof(table[0]), PROT_READ, MAP_SHARED, SHAI_FD_CLASSES, 0);
	if (mapping == MAP_FAILED)
		return;
	shai_classes_unmap();
	table = mapping;
	table_count = count;
}

uint32_t
shai_class_of(uint32_t conduit)
{
	if (conduit >= table_count)
		shai_classes_map();
	if (conduit >= table_count)
		return 0;
	return __atomic_load_n(&table[conduit], __ATOMIC_RELAXED);
}
