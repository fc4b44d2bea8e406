/* SPDX-License-Identifier: BSD-2-Clause */
#include "choice.h"

#include <stdlib.h>
#include <unistd.h>

#include "shai_wire.h"

/* A line has no more names: the shortest takes four bytes, with quotes and comma. */
#define LISTS_MAX (2 + REQUEST_LINE_MAX / 3)

int
chance_seed(struct chance *chance)
{
	return getentropy(chance->state, sizeof chance->state);
}

/* Returns a number below limit, which is at most 2^31. */
static size_t
below(struct chance *chance, size_t limit)
{
	return (size_t)(((uint64_t)nrand48(chance->state) * limit) >> 31);
}

static bool
is_among(size_t place, const size_t *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (places[i] == place)
			return true;
	return false;
}

/* Picks count different numbers below total, as Robert Floyd does: one draw for each. */
static void
draw(struct chance *chance, size_t total, size_t *places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t last = total - count + i;
		size_t place = below(chance, last + 1);

		places[i] = is_among(place, places, i) ? last : place;
	}
}

/* The document at a place in the sequence of the lists. */
static struct document
at(const struct document_list *const *lists, size_t place)
{
	while (place >= (*lists)->count)
		place -= (*lists++)->count;
	return (*lists)->items[place];
}

static size_t
choose_from(const struct document_list *const *lists, size_t list_count, uint32_t wanted,
    struct chance *chance, struct document *out)
{
	size_t places[SHAI_BATCH_MAX];
	size_t count = wanted, total = 0;

	for (size_t i = 0; i < list_count; i++)
		total += lists[i]->count;
	if (count > total)
		count = total;
	draw(chance, total, places, count);
	for (size_t i = 0; i < count; i++)
		out[i] = at(lists, places[i]);
	return count;
}

size_t
choose(const struct documents *documents, const struct request *request, struct chance *chance,
    struct document *out)
{
	const struct document_list *lists[LISTS_MAX];
	const struct owner *owner = documents_of(documents, request->user);
	const json_t *name;
	size_t count = 0, i;

	lists[count++] = &documents->everybodys;
	if (owner != NULL)
		lists[count++] = &owner->own;
	json_array_foreach(request->friends, i, name)
	{
		owner = documents_of(documents, json_string_value(name));
		if (owner != NULL && count < LISTS_MAX)
			lists[count++] = &owner->shown;
	}
	return choose_from(lists, count, request->count, chance, out);
}

size_t
choose_any(const struct documents *documents, const struct request *request, struct chance *chance,
    struct document *out)
{
	const struct document_list *all = &documents->all;

	return choose_from(&all, 1, request->count, chance, out);
}

/* Each turn needs the one before: a multiplication and an addition, four cycles today. */
void
keep_busy(uint64_t cycles)
{
	uint64_t value = cycles;

	for (uint64_t turn = 0; turn < cycles / 4; turn++) {
		value = value * UINT64_C(6364136223846793005) + 1;
		__asm__ volatile("" : "+r"(value));
	}
}
