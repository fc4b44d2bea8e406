/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Listing directories and resolving names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

/* Entry points of programs compiled with _FORTIFY_SOURCE; no header declares them. */
char *__realpath_chk(const char *path, char *resolved, size_t size);
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
ssize_t __readlinkat_chk(int directory, const char *path, char *out, size_t size, size_t room);

INTERPOSED DIR *
opendir(const char *path)
{
	struct shai_place place;
	int descriptor;
	DIR *stream;

	if (!shai_place_covered(&place, path))
		return NEXT(opendir)(path);
	if (place.placement == SHAI_PLACE_RESERVED) {
		errno = ENOTDIR;
		return NULL;
	}
	descriptor = shai_place_open(&place, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (descriptor < 0)
		return NULL;
	stream = fdopendir(descriptor);
	if (stream == NULL)
		shai_place_release(&place, descriptor);
	return stream;
}

/*
 * Returns the normal path if the file exists. Symbolic links are not resolved: the
 * real path is a name of the host, which means nothing to the task.
 */
static char *
resolve_place(const char *path, const struct shai_place *place, char *resolved)
{
	char normal[SHAI_PATH_MAX];
	int descriptor = shai_place_look(place, true);

	if (descriptor < 0)
		return NULL;
	shai_place_release(place, descriptor);
	if (shai_path_normalise(path, normal, sizeof(normal)) != 0) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	if (resolved == NULL)
		return strdup(normal);
	memcpy(resolved, normal, strlen(normal) + 1);
	return resolved;
}

INTERPOSED char *
realpath(const char *restrict path, char *restrict resolved)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(realpath)(path, resolved);
	return resolve_place(path, &place, resolved);
}

INTERPOSED char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path) || size < PATH_MAX)
		return NEXT(__realpath_chk)(path, resolved, size);
	return resolve_place(path, &place, resolved);
}

INTERPOSED char *
canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

static ssize_t
read_link(const struct shai_place *place, char *out, size_t size)
{
	if (place->placement == SHAI_PLACE_RESERVED) {
		errno = EINVAL; /* it exists, but is not a link */
		return -1;
	}
	return syscall(SYS_readlinkat, place->descriptor, place->name, out, size);
}

INTERPOSED ssize_t
readlink(const char *restrict path, char *restrict out, size_t size)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(readlink)(path, out, size);
	return read_link(&place, out, size);
}

INTERPOSED ssize_t
readlinkat(int directory, const char *restrict path, char *restrict out, size_t size)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(readlinkat)(directory, path, out, size);
	return read_link(&place, out, size);
}

INTERPOSED ssize_t
__readlink_chk(const char *path, char *out, size_t size, size_t room)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path) || size > room)
		return NEXT(__readlink_chk)(path, out, size, room);
	return read_link(&place, out, size);
}

INTERPOSED ssize_t
__readlinkat_chk(int directory, const char *path, char *out, size_t size, size_t room)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path) || size > room)
		return NEXT(__readlinkat_chk)(directory, path, out, size, room);
	return read_link(&place, out, size);
}
