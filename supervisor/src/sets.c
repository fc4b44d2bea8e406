/* SPDX-License-Identifier: BSD-2-Clause */
#include "sets.h"

#include <search.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static int
by_parameters(const void *left, const void *right)
{
	const struct set *a = left, *b = right;
	int order = strcmp(a->principal, b->principal);

	return order != 0 ? order : strcmp(a->region, b->region);
}

static struct set *
lookup(const struct sets *sets, const char *principal, const char *region)
{
	struct set wanted;
	struct set **found;

	text_copy(wanted.principal, sizeof(wanted.principal), principal);
	text_copy(wanted.region, sizeof(wanted.region), region);
	found = tfind(&wanted, &sets->tree, by_parameters);
	return found == NULL ? NULL : *found;
}

static struct set *
make(const struct shai_control_set *record, const uint32_t *classes)
{
	struct set *set = calloc(1, sizeof(*set) + record->class_count * sizeof(*classes));

	if (set == NULL)
		return NULL;
	memcpy(set->principal, record->principal, sizeof(set->principal));
	memcpy(set->region, record->region, sizeof(set->region));
	memcpy(set->instance, record->instance, sizeof(set->instance));
	memcpy(set->kv_user, record->kv_user, sizeof(set->kv_user));
	memcpy(set->kv_password, record->kv_password, sizeof(set->kv_password));
	set->flags = record->flags;
	set->expires = record->expires;
	set->ends = record->ends;
	set->holders = 1;
	set->class_count = record->class_count;
	memcpy(set->classes, classes, record->class_count * sizeof(*classes));
	return set;
}

int
sets_apply(struct sets *sets, const struct shai_control_set *record, const uint32_t *classes)
{
	struct set *set = make(record, classes);
	struct set **place;

	if (set == NULL)
		return -1;
	place = tsearch(set, &sets->tree, by_parameters);
	if (place == NULL) {
		set_release(set);
		return -1;
	}
	if (*place != set) {
		set_release(*place);
		*place = set;
	}
	return 0;
}

void
sets_forget(struct sets *sets, const struct shai_control_forget *record)
{
	struct set *set = lookup(sets, record->principal, record->region);

	if (set == NULL)
		return;
	(void)tdelete(set, &sets->tree, by_parameters);
	set_release(set);
}

struct set *
sets_hold(const struct sets *sets, const char *principal, const char *region, int64_t now)
{
	struct set *set = lookup(sets, principal, region);

	if (set == NULL || (set->expires != 0 && set->expires <= now))
		return NULL;
	set->holders++;
	return set;
}

void
set_release(struct set *set)
{
	if (set == NULL || --set->holders > 0)
		return;
	sodium_memzero(set->kv_password, sizeof(set->kv_password));
	free(set);
}

bool
set_named(const struct set *set, const char *principal, const char *region)
{
	return strcmp(set->principal, principal) == 0 && strcmp(set->region, region) == 0;
}

static int
by_number(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

bool
set_has_class(const struct set *set, uint32_t number)
{
	return bsearch(&number, set->classes, set->class_count, sizeof(number), by_number) != NULL;
}

static void
release(void *set)
{
	set_release(set);
}

void
sets_free(struct sets *sets)
{
	tdestroy(sets->tree, release);
	sets->tree = NULL;
}
