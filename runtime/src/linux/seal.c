/* SPDX-License-Identifier: BSD-2-Clause */
#include "seal.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "gate.h"
#include "mappings.h"
#include "memory.h"
#include "shai_rollback.h"
#include "shai_wire.h"

/*
 * The monitor examines all that is done here, and names what keeps a worker from being
 * sealed. So what does not fit the limits of the state is left out of it, and refused.
 */

static void *
at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

#define POPULATE_READ 22 /* MADV_POPULATE_READ, Linux 5.14 */

/* Pages cannot be read, for example, beyond the end of their file; an old kernel does not tell. */
static bool
is_readable(const struct shai_mapping *mapping)
{
	return madvise(at(mapping->start), mapping->end - mapping->start, POPULATE_READ) == 0 ||
	       errno == EINVAL;
}

/* Adds a mapping to the table of what is restored. What cannot be read is left out. */
static bool
add_range(void *context, const struct shai_mapping *mapping)
{
	struct shai_rollback_state *state = context;
	struct shai_rollback_range *range = &state->range[state->range_count];
	uint64_t source = SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_SNAPSHOT;
	uint64_t end = source + (uint64_t)SHAI_ROLLBACK_PAGES_MAX * SHAI_ROLLBACK_PAGE;

	if (!mapping->writable || mapping->shared)
		return true;
	if (state->range_count > 0)
		source = range[-1].source + range[-1].length;
	if (state->range_count == SHAI_ROLLBACK_RANGES_MAX ||
	    mapping->end - mapping->start > end - source)
		return false;
	if (!is_readable(mapping))
		return true;
	*range =
	    (struct shai_rollback_range){mapping->start, source, mapping->end - mapping->start};
	state->range_count++;
	return true;
}

static size_t
state_size(const struct shai_rollback_state *state)
{
	const struct shai_rollback_range *last = &state->range[state->range_count - 1];

	return last->source + last->length - SHAI_ROLLBACK_STATE;
}

/* Maps the state with room for all ranges, and stores the table in it. */
static struct shai_rollback_state *
make_state(const struct shai_rollback_state *table)
{
	void *state = mmap(at(SHAI_ROLLBACK_STATE), state_size(table), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (state == MAP_FAILED)
		return NULL;
	memcpy(state, table, sizeof(*table));
	return state;
}

/*
 * Stores the vector registers, which functions do not preserve. Their area must be zero:
 * XRSTOR looks at all of its header. x87 and SSE count as used, so that XRSTOR loads them: of
 * registers with initial values the processor may notice that, or not.
 */
static void
save_vectors(struct shai_rollback_state *state)
{
	char *area = (char *)state + SHAI_ROLLBACK_VECTORS;
	unsigned size, ignored;

	if (__get_cpuid_count(0xd, 0, &ignored, &size, &ignored, &ignored) == 0 || size == 0 ||
	    size > SHAI_ROLLBACK_VECTORS_SIZE)
		return;
	__asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(-1), "d"(-1) : "memory");
	*(uint64_t *)(void *)(area + SHAI_ROLLBACK_VECTORS_USED) |= SHAI_ROLLBACK_VECTORS_ALWAYS;
}

static bool
is_zero(const uint64_t *page)
{
	for (size_t i = 0; i < SHAI_ROLLBACK_PAGE / sizeof(*page); i++)
		if (page[i] != 0)
			return false;
	return true;
}

/* A page of zeros is not copied: unless written, the snapshot's takes no memory. */
static void
copy_ranges(const struct shai_rollback_state *state)
{
	for (uint64_t i = 0; i < state->range_count; i++)
		for (uint64_t offset = 0; offset < state->range[i].length;
		     offset += SHAI_ROLLBACK_PAGE) {
			const void *page = at(state->range[i].destination + offset);

			if (!is_zero(page))
				memcpy(
				    at(state->range[i].source + offset), page, SHAI_ROLLBACK_PAGE);
		}
}

/*
 * Whether a program has interval timers. It relies on them, and so is not sealed: the roll-back
 * code would stop them.
 */
static bool
has_timers(void)
{
	struct itimerval timer[3];

	if (getitimer(ITIMER_REAL, &timer[0]) != 0 || getitimer(ITIMER_VIRTUAL, &timer[1]) != 0 ||
	    getitimer(ITIMER_PROF, &timer[2]) != 0)
		return true;
	for (int i = 0; i < 3; i++)
		if (timer[i].it_value.tv_sec != 0 || timer[i].it_value.tv_usec != 0)
			return true;
	return false;
}

/* Called by assembly only. */
int64_t shai_take_snapshot(struct shai_rollback_state *state);

/*
 * Takes the snapshot and asks for the seal. The stack is a part of the snapshot, but
 * sessions use nothing of this function's frame, which alone changes meanwhile. The monitor
 * writes the worker's filter into it.
 */
int64_t
shai_take_snapshot(struct shai_rollback_state *state)
{
	struct {
		struct sock_fprog head;
		struct sock_filter instructions[SHAI_ROLLBACK_FILTER_MAX];
	} program;

	int64_t (*const seal)(const struct sock_fprog *) =
	    (int64_t(*)(const struct sock_fprog *))(SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_SEAL);

	program.head = (struct sock_fprog){0, program.instructions};
	__asm__("mov %%fs:0, %0" : "=r"(state->thread)); /* the psABI's pointer to itself */
	save_vectors(state);
	copy_ranges(state);
	if (mprotect(state, state_size(state), PROT_READ) == 0)
		(void)seal(&program.head); /* returns only if it is refused */
	return -1;
}

/*
 * Takes the snapshot where sessions begin: the roll-back code comes back to label 1 with a
 * connection, again and again, with the stack of the first time.
 */
__attribute__((naked)) static int64_t
snapshot_and_accept(__attribute__((unused)) struct shai_rollback_state *state)
{
	__asm__("push %rbx\n\t"
		"push %rbp\n\t"
		"push %r12\n\t"
		"push %r13\n\t"
		"push %r14\n\t"
		"push %r15\n\t"
		"mov %rsp, 8(%rdi)\n\t" /* state->stack */
		"lea 1f(%rip), %rax\n\t"
		"mov %rax, 16(%rdi)\n\t" /* state->resume */
		"sub $8, %rsp\n\t"
		"call shai_take_snapshot\n\t"
		"add $8, %rsp\n"
		"1:\n\t"
		"pop %r15\n\t"
		"pop %r14\n\t"
		"pop %r13\n\t"
		"pop %r12\n\t"
		"pop %rbp\n\t"
		"pop %rbx\n\t"
		"ret");
}
static_assert(offsetof(struct shai_rollback_state, stack) == 8, "snapshot_and_accept stores it");
static_assert(offsetof(struct shai_rollback_state, resume) == 16, "snapshot_and_accept stores it");

/* Returns as shai_seal_and_accept does. */
static int64_t
prepare_and_accept(void)
{
	struct shai_rollback_state table = {0}, *state;

	/* The number is a filler where the supervisor does not roll back: then this fails. */
	if (mmap(at(SHAI_ROLLBACK_CODE), SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_FIXED_NOREPLACE, SHAI_FD_ROLLBACK, 0) == MAP_FAILED)
		return -1;
	if (shai_gate_prepare() != 0)
		return -1;
	if (shai_memory_reserve() != 0)
		table.unfit = SHAI_ROLLBACK_HAS_NO_RESERVE;
	else if (has_timers())
		table.unfit = SHAI_ROLLBACK_HAS_TIMERS;
	if (shai_mappings_visit(add_range, &table) != 0 || table.range_count == 0)
		return -1;
	state = make_state(&table);
	return state == NULL ? -1 : snapshot_and_accept(state);
}

int64_t
shai_seal_and_accept(void)
{
	int64_t connection = prepare_and_accept();

	if (connection < 0)
		shai_memory_release();
	return connection;
}

void
shai_roll_back(void)
{
	__asm__ volatile("jmp *%0" : : "r"(SHAI_ROLLBACK_CODE));
	__builtin_unreachable();
}

#else

int64_t
shai_seal_and_accept(void)
{
	return -1;
}

void
shai_roll_back(void)
{
	__builtin_trap();
}

#endif
