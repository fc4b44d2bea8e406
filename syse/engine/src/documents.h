/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All documents, by who may read them as their headers say.
 */
#ifndef SYSE_ENGINE_DOCUMENTS_H
#define SYSE_ENGINE_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "header.h"

struct document {
	uint32_t conduit; /* its number, which is its file's name */
	uint32_t folder;  /* index in documents.folders */
};

struct document_list {
	struct document *items;
	size_t count;
	size_t room;
};

struct owner {
	struct document_list own;   /* all that are this user's */
	struct document_list shown; /* those of them that friends may read */
};

/* Made once. Threads may read it together. */
struct documents {
	struct document_list all;
	struct document_list everybodys;
	struct owner *owners;
	size_t owner_count;
	size_t owner_room;
	json_t *places; /* a user's name: index in owners */
	char **folders; /* paths behind the root's: "/7/0" */
	size_t folder_count;
	size_t folder_room;
	int root;
};

/*
 * Reads the headers of all documents beneath a folder such as the monitor's view, where a
 * document's file name is its conduit's number in decimal. Complains about files that are
 * none, and leaves them out. Returns 0, or -1 with errno if the folder cannot be read or
 * memory is short.
 */
int documents_load(struct documents *documents, const char *folder);

void documents_release(struct documents *documents);

/* Remembers a folder's path, as in folders. Returns its number, or -1 with errno. */
long documents_add_folder(struct documents *documents, const char *path);

/*
 * Adds a document with its header. Returns 0, or -1 with errno: EILSEQ if the owner's name
 * is not UTF-8, so that no query can name it.
 */
int documents_add(
    struct documents *documents, struct document document, const struct header *header);

/* Returns what a user owns, or NULL. */
const struct owner *documents_of(const struct documents *documents, const char *user);

/* Opens a document for reading. Returns its descriptor, or -1 with errno. */
int documents_open(const struct documents *documents, struct document document);

#endif
