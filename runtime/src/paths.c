/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths.h"

#include <stdbool.h>
#include <string.h>

/* Removes the last component of out[0..length), which begins with '/'. */
static size_t
parent_length(const char *out, size_t length)
{
	while (length > 0 && out[length - 1] != '/')
		length--;
	return length > 0 ? length - 1 : 0;
}

int
shai_path_normalise(const char *path, char *out, size_t size)
{
	size_t length = 0; /* without the final NUL; the root is 0 while building */

	if (path[0] != '/' || size < 2)
		return -1;
	while (*path != '\0') {
		size_t name = 0;

		path += strspn(path, "/");
		name = strcspn(path, "/");
		if (name == 2 && memcmp(path, "..", 2) == 0) {
			length = parent_length(out, length);
		} else if (name > 0 && !(name == 1 && path[0] == '.')) {
			if (length + name + 2 > size)
				return -1;
			out[length] = '/';
			memcpy(out + length + 1, path, name);
			length += name + 1;
		}
		path += name;
	}
	if (length == 0)
		out[length++] = '/';
	out[length] = '\0';
	return 0;
}

int
shai_path_beneath(const char *prefix, const char *relative, char *out, size_t size)
{
	char joined[SHAI_PATH_MAX];
	size_t length = strlen(prefix);
	size_t name = strlen(relative);

	if (length + name + 2 > sizeof(joined))
		return -1;
	/* Written by hand, because signal handlers call this. */
	memcpy(joined, prefix, length);
	joined[length] = '/';
	memcpy(joined + length + 1, relative, name + 1);
	if (shai_path_normalise(joined, out, size) != 0 || strncmp(out, prefix, length) != 0)
		return -1;
	return out[length] == '\0' || out[length] == '/' ? 0 : -1;
}

/* Reports whether prefix covers path. *length becomes the prefix's length. */
static bool
covers(const struct shai_capability *capability, const char *path, size_t *length)
{
	*length = strnlen(capability->prefix, sizeof(capability->prefix));
	if (strncmp(path, capability->prefix, *length) != 0)
		return false;
	if (path[*length] == '\0')
		return true;
	return path[*length] == '/' && capability->kind == SHAI_KIND_DIRECTORY;
}

const struct shai_capability *
shai_table_find(const struct shai_table *table, const char *path, const char **rest)
{
	const struct shai_capability *found = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < table->count; i++) {
		size_t length;

		if (!covers(&table->entry[i], path, &length) || length <= longest)
			continue;
		found = &table->entry[i];
		longest = length;
	}
	if (found != NULL)
		*rest = path[longest] == '\0' ? "." : path + longest + 1;
	return found;
}
