/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which capability covers a path. Pure: names only, the file system is never
 * asked, so ".." after a symbolic link goes where the name says.
 */
#ifndef SHAI_PATHS_H
#define SHAI_PATHS_H

#include <stddef.h>

#include "shai_wire.h"

/* Longest path that is mapped, with its NUL; longer ones are left to the kernel. */
#define SHAI_PATH_MAX 4096

/*
 * The normal absolute path of a path relative to a capability's directory.
 * Returns 0, or -1 when it leads out of the directory or does not fit.
 */
int shai_path_beneath(const char *prefix, const char *relative, char *out, size_t size);

struct shai_table {
	size_t count;
	struct shai_capability entry[];
};

/*
 * Resolves ".", ".." and repeated slashes of an absolute path; ".." of the root
 * is the root. A trailing slash is dropped.
 * Returns 0, or -1 when the path is not absolute or does not fit.
 */
int shai_path_normalise(const char *path, char *out, size_t size);

/*
 * The capability with the longest prefix covering a normal path, or NULL. Pipes
 * and channels cover exactly their own path. *rest then points into path, or at
 * "." when nothing is left.
 */
const struct shai_capability *shai_table_find(
    const struct shai_table *table, const char *path, const char **rest);

#endif
