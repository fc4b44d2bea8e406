/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the documents beneath a folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complaints.h"
#include "documents.h"

#define DEPTH_MAX 8 /* of folders beneath the root; the view has two */

struct folder {
	char path[PATH_MAX]; /* as it is opened */
	size_t root;         /* how much of the path is the root's */
	int depth;
	long number; /* in documents.folders, -1 before its first document */
};

static int walk(struct documents *documents, struct folder *folder);

static bool
conduit_of(const char *name, uint32_t *conduit)
{
	size_t digits = strspn(name, "0123456789");
	unsigned long value = digits <= 10 && name[digits] == '\0' ? strtoul(name, NULL, 10) : 0;

	*conduit = (uint32_t)value;
	return value >= 1 && value <= UINT32_MAX;
}

/* Reads and adds one document. Returns 0 also if it had to be left out. */
static int
add_document(struct documents *documents, struct folder *folder, int file, uint32_t conduit)
{
	char text[HEADER_SIZE_MAX];
	struct header header;
	ssize_t size = read(file, text, sizeof text);
	const char *problem = size < 0 ? strerror(errno) : header_read(text, (size_t)size, &header);

	if (problem == NULL && folder->number < 0)
		folder->number = documents_add_folder(documents, folder->path + folder->root);
	if (problem == NULL && folder->number < 0)
		return -1;
	if (problem == NULL &&
	    documents_add(
		documents, (struct document){conduit, (uint32_t)folder->number}, &header) != 0) {
		if (errno != EILSEQ)
			return -1;
		problem = "its owner's name is not UTF-8";
	}
	if (problem != NULL)
		complain("document %u is left out: %s", conduit, problem);
	return 0;
}

static int
visit(struct documents *documents, struct folder *folder, const char *name)
{
	struct folder below = {.root = folder->root, .depth = folder->depth + 1, .number = -1};
	struct stat status;
	uint32_t conduit;
	int entry, result = 0;

	if (snprintf(below.path, sizeof below.path, "%s/%s", folder->path, name) >=
	    (int)sizeof below.path)
		return 0;
	/* O_NONBLOCK, because the open of a FIFO would wait for its writer. */
	entry = open(below.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (entry < 0 || fstat(entry, &status) != 0)
		complain("a file is left out: %s", strerror(errno));
	else if (S_ISDIR(status.st_mode) && below.depth <= DEPTH_MAX)
		result = walk(documents, &below);
	else if (S_ISREG(status.st_mode) && conduit_of(name, &conduit))
		result = add_document(documents, folder, entry, conduit);
	else
		complain("a file is left out: its name is not a conduit's number");
	if (entry >= 0)
		(void)close(entry);
	return result;
}

/* Visits a folder. Returns 0, or -1 with errno. */
static int
walk(struct documents *documents, struct folder *folder)
{
	/* By paths, because a monitor decides about those that the sandbox does not know. */
	DIR *entries = opendir(folder->path);
	const struct dirent *found;
	int result = 0;

	if (entries == NULL)
		return -1;
	while (result == 0 && (found = readdir(entries)) != NULL)
		if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
			result = visit(documents, folder, found->d_name);
	(void)closedir(entries);
	return result;
}

int
documents_load(struct documents *documents, const char *path)
{
	struct folder root = {.number = -1};
	int length = snprintf(root.path, sizeof root.path, "%s", path);

	*documents = (struct documents){.places = json_object(), .root = -1};
	if (documents->places == NULL)
		return -1;
	root.root = (size_t)length;
	documents->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return documents->root < 0 ? -1 : walk(documents, &root);
}
