/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "mappings.h"
#include "reservation.h"

#define PAGE 4096u
#define STACK_LEAST (32u << 10) /* what sealing itself needs */

struct place {
	uint64_t address;
	bool mapped;
};

static bool
find_place(void *sought, const struct shai_mapping *mapping)
{
	struct place *place = sought;

	place->mapped |= mapping->start <= place->address && place->address < mapping->end;
	return !place->mapped;
}

/*
 * Makes the heap large enough by allocating once: with one thread it is one region, which
 * malloc(3) then neither shrinks nor leaves for mappings. That of other C libraries, such as
 * musl, gives large blocks back: their heap cannot be reserved.
 */
static int
reserve_heap(size_t size)
{
	void *volatile block; /* compilers remove pairs of malloc and free */
	struct place place = {0};

#ifdef __GLIBC__
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, -1);
	(void)mallopt(M_TOP_PAD, 0);
#endif
	block = malloc(size);
	if (block == NULL && size != 0)
		return -1;
	place.address = (uint64_t)(uintptr_t)block;
	free(block);
	if (size == 0)
		return 0;
	return shai_mappings_visit(find_place, &place) == 0 && place.mapped ? 0 : -1;
}

/* Finds the stack of the first thread. */
static bool
find_stack(void *found, const struct shai_mapping *mapping)
{
	if (mapping->stack)
		*(struct shai_mapping *)found = *mapping;
	return !mapping->stack;
}

/* Returns whether the limit on the stack's size allows it to begin at an address. */
static bool
is_within_limit(const struct shai_mapping *stack, uint64_t begin)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_STACK, &limit) == 0 && stack->end - begin <= limit.rlim_cur;
}

static void *guard; /* the page below the stack; NULL: the stack may grow */

/* Keeps a stack from growing: it would have to be larger than its copy. */
static int
end_stack_at(uint64_t begin)
{
	void *page = mmap((void *)(uintptr_t)(begin - PAGE), PAGE, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		return -1;
	guard = page;
	return 0;
}

static int
reserve_stack(size_t size)
{
	struct shai_mapping stack = {0};
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0), begin;

	size = size < STACK_LEAST ? STACK_LEAST : size;
	if (shai_mappings_visit(find_stack, &stack) != 0)
		return -1;
	if (here < stack.start || here >= stack.end)
		return 0; /* the program's own */
	begin = (here - size) & ~(uint64_t)(PAGE - 1);
	if (size > here || !is_within_limit(&stack, begin))
		return -1;
	if (begin < stack.start)
		(void)*(volatile char *)(uintptr_t)begin; /* the kernel extends it up to here */
	if (begin > stack.start && munmap((void *)(uintptr_t)stack.start, begin - stack.start) != 0)
		return -1;
	return end_stack_at(begin);
}

int
shai_memory_reserve(void)
{
	const struct shai_reservation *reservation = shai_reservation();
	int heap = reserve_heap(reservation->heap), stack = reserve_stack(reservation->stack);

	return heap != 0 ? heap : stack;
}

void
shai_memory_release(void)
{
	if (guard != NULL)
		(void)munmap(guard, PAGE);
	guard = NULL;
}
