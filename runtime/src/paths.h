/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the capability that covers a path. Pure: it uses names only and never asks
 * the file system, so ".." after a symbolic link leads to where the name says.
 */
#ifndef SHAI_PATHS_H
#define SHAI_PATHS_H

#include <stddef.h>

#include "shai_wire.h"

/* The longest path that is mapped, with its NUL. Longer ones are left to the kernel. */
#define SHAI_PATH_MAX 4096

/*
 * Makes the normal absolute path of a path relative to a capability's directory.
 * Returns 0, or -1 if it leads out of the directory or does not fit.
 */
int shai_path_beneath(const char *prefix, const char *relative, char *out, size_t size);

struct shai_table {
	size_t count;
	struct shai_capability entry[];
};

/*
 * Resolves ".", ".." and repeated slashes of an absolute path. The parent of the root
 * is the root. Drops a trailing slash. Returns 0, or -1 if the path is not absolute
 * or does not fit.
 */
int shai_path_normalise(const char *path, char *out, size_t size);

/*
 * Returns the capability with the longest prefix that covers a normal path, or NULL.
 * Pipes and channels cover exactly their own path. *rest then points into path, or at
 * "." if nothing is left.
 */
const struct shai_capability *shai_table_find(
    const struct shai_table *table, const char *path, const char **rest);

#endif
