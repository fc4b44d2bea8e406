/* SPDX-License-Identifier: BSD-2-Clause */
#include "classes.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shai_wire.h"

/*
 * The mapping has room for so many conduits beyond those of the file, because a sealed worker
 * cannot map the file again when it has grown.
 */
#define ROOM (1u << 20)

static const uint32_t *table;
static size_t table_count;  /* conduits in the file */
static size_t mapped_count; /* conduits for which the mapping has room; 0 without one */

void
shai_classes_unmap(void)
{
	if (mapped_count != 0)
		(void)munmap((void *)(uintptr_t)table, mapped_count * sizeof(table[0]));
	table = NULL;
	table_count = mapped_count = 0;
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
	if (count > mapped_count) {
		mapping = mmap(NULL, (count + ROOM) * sizeof(table[0]), PROT_READ, MAP_SHARED,
		    SHAI_FD_CLASSES, 0);
		if (mapping == MAP_FAILED)
			return;
		shai_classes_unmap();
		table = mapping;
		mapped_count = count + ROOM;
	}
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
