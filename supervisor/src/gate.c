/* SPDX-License-Identifier: BSD-2-Clause */
#include "gate.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory_file.h"

#define CONDUITS_MAX (SHAI_GATE_CLASSES_SIZE / sizeof(uint32_t))

int
gate_new(struct shai_grant **grant)
{
	/* This process goes on writing by the mapping, which is older than the seals. */
	const int seals = F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	int file = memfd_create("grant", MFD_CLOEXEC | MFD_ALLOW_SEALING), readable = -1;
	void *map = MAP_FAILED;

	if (file < 0)
		return -1;
	if (ftruncate(file, SHAI_GATE_GRANT_SIZE) == 0)
		map = mmap(NULL, SHAI_GATE_GRANT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (map == MAP_FAILED) {
		(void)close(file);
		return -1;
	}
	/* All of its pages now: their number would tell sessions of the largest set. */
	memset(map, 0, SHAI_GATE_GRANT_SIZE);
	if (fcntl(file, F_ADD_SEALS, seals) == 0)
		readable = memory_file_to_read(file);
	else
		(void)close(file);
	if (readable < 0)
		gate_free(map);
	else
		*grant = map;
	return readable;
}

void
gate_free(struct shai_grant *grant)
{
	if (grant != NULL)
		(void)munmap(grant, SHAI_GATE_GRANT_SIZE);
}

/* The gate reads in another process, at any time. */
static void
store(uint32_t *field, uint32_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

void
gate_open(struct shai_grant *grant, uint32_t flags, size_t conduits, const uint32_t *classes,
    size_t count)
{
	const size_t former = grant->class_count;

	/* Backwards: of a set that grows, what the gate finds meanwhile is of the old or new one.
	 */
	for (size_t i = count; i-- > 0;)
		store(&grant->class[i], classes[i]);
	store(&grant->class_count, (uint32_t)count);
	for (size_t i = count; i < former; i++) /* a set can lose classes: gate_shut counts on it */
		store(&grant->class[i], 0);
	store(&grant->conduit_count, (uint32_t)(conduits < CONDUITS_MAX ? conduits : CONDUITS_MAX));
	store(&grant->flags, flags | SHAI_GRANT_BOUND);
}

void
gate_shut(struct shai_grant *grant)
{
	if (grant == NULL || grant->flags == 0)
		return;
	store(&grant->flags, 0);
	for (uint32_t i = grant->class_count; i-- > 0;)
		store(&grant->class[i], 0);
	store(&grant->class_count, 0);
}
