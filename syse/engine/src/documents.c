/* SPDX-License-Identifier: BSD-2-Clause */
#include "documents.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns items with room for one more of them, or NULL; *room is what it has then. */
static void *
with_room(void *items, size_t count, size_t *room, size_t size)
{
	size_t wanted = count < 4 ? 4 : 2 * count;

	if (count < *room)
		return items;
	items = reallocarray(items, wanted, size);
	if (items != NULL)
		*room = wanted;
	return items;
}

static int
append(struct document_list *list, struct document document)
{
	struct document *items =
	    with_room(list->items, list->count, &list->room, sizeof list->items[0]);

	if (items == NULL)
		return -1;
	list->items = items;
	list->items[list->count++] = document;
	return 0;
}

const struct owner *
documents_of(const struct documents *documents, const char *user)
{
	const json_t *place = json_object_get(documents->places, user);

	return place == NULL ? NULL : &documents->owners[json_integer_value(place)];
}

static struct owner *
make_owner(struct documents *documents, const char *user)
{
	const json_t *place = json_object_get(documents->places, user);
	struct owner *owners;

	if (place != NULL)
		return &documents->owners[json_integer_value(place)];
	owners = with_room(documents->owners, documents->owner_count, &documents->owner_room,
	    sizeof documents->owners[0]);
	if (owners == NULL)
		return NULL;
	documents->owners = owners;
	if (json_object_set_new(
		documents->places, user, json_integer((json_int_t)documents->owner_count)) != 0) {
		errno = EILSEQ; /* not UTF-8, so no query can name it */
		return NULL;
	}
	owners[documents->owner_count] = (struct owner){0};
	return &owners[documents->owner_count++];
}

int
documents_add(struct documents *documents, struct document document, const struct header *header)
{
	struct owner *owner;

	if (header->visibility == VISIBILITY_PUBLIC) {
		if (append(&documents->everybodys, document) != 0)
			return -1;
		return append(&documents->all, document);
	}
	owner = make_owner(documents, header->owner);
	if (owner == NULL || append(&owner->own, document) != 0)
		return -1;
	if (header->visibility == VISIBILITY_FRIENDS && append(&owner->shown, document) != 0)
		return -1;
	return append(&documents->all, document);
}

long
documents_add_folder(struct documents *documents, const char *path)
{
	char **folders = with_room(documents->folders, documents->folder_count,
	    &documents->folder_room, sizeof documents->folders[0]);
	char *copy = strdup(path);

	if (folders != NULL)
		documents->folders = folders;
	if (folders == NULL || copy == NULL) {
		free(copy);
		return -1;
	}
	folders[documents->folder_count] = copy;
	return (long)documents->folder_count++;
}

int
documents_open(const struct documents *documents, struct document document)
{
	char path[PATH_MAX];

	snprintf(
	    path, sizeof path, ".%s/%u", documents->folders[document.folder], document.conduit);
	return openat(documents->root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

void
documents_release(struct documents *documents)
{
	for (size_t i = 0; i < documents->owner_count; i++) {
		free(documents->owners[i].own.items);
		free(documents->owners[i].shown.items);
	}
	for (size_t i = 0; i < documents->folder_count; i++)
		free(documents->folders[i]);
	free(documents->owners);
	free(documents->folders);
	free(documents->all.items);
	free(documents->everybodys.items);
	json_decref(documents->places);
	if (documents->root >= 0)
		(void)close(documents->root);
	*documents = (struct documents){.root = -1};
}
