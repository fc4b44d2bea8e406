/* SPDX-License-Identifier: BSD-2-Clause */
#include "keys.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static int
by_name(const void *left, const void *right)
{
	return strcmp(
	    ((const struct principal *)left)->name, ((const struct principal *)right)->name);
}

static struct principal *
lookup(const struct keys *keys, const char *name)
{
	struct principal wanted;
	struct principal **found;

	text_copy(wanted.name, sizeof(wanted.name), name);
	found = tfind(&wanted, &keys->tree, by_name);
	return found == NULL ? NULL : *found;
}

static void
remove_unless_used(struct keys *keys, struct principal *principal)
{
	if (principal->present || principal->sessions > 0)
		return;
	(void)tdelete(principal, &keys->tree, by_name);
	free(principal);
}

int
keys_apply(struct keys *keys, const struct shai_control_key *record)
{
	struct principal *principal = lookup(keys, record->principal);

	if (record->present == 0) {
		if (principal != NULL) {
			principal->present = false;
			principal->version++;
			remove_unless_used(keys, principal);
		}
		return 0;
	}
	if (principal == NULL) {
		principal = calloc(1, sizeof(*principal));
		if (principal == NULL)
			return -1;
		memcpy(principal->name, record->principal, sizeof(principal->name));
		if (tsearch(principal, &keys->tree, by_name) == NULL) {
			free(principal);
			return -1;
		}
	}
	if (memcmp(principal->key, record->key, sizeof(principal->key)) != 0)
		principal->version++;
	memcpy(principal->key, record->key, sizeof(principal->key));
	principal->present = true;
	return 0;
}

struct principal *
keys_find(const struct keys *keys, const char *name)
{
	struct principal *principal = lookup(keys, name);

	return principal != NULL && principal->present ? principal : NULL;
}

bool
keys_enter(struct principal *principal, uint32_t limit)
{
	if (limit > 0 && principal->sessions >= limit)
		return false;
	principal->sessions++;
	return true;
}

void
keys_leave(struct keys *keys, struct principal *principal)
{
	principal->sessions--;
	remove_unless_used(keys, principal);
}

void
keys_free(struct keys *keys)
{
	tdestroy(keys->tree, free);
	keys->tree = NULL;
}
