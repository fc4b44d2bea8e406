/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The C library's functions that open by path, redefined for mode baseline. In the other
 * modes the kernel refuses the call beneath them, and trap.c does what these do; in mode
 * baseline it refuses nothing, and a path beneath /shai names no file.
 *
 * They are those of which trap.c answers the system calls. What is not redefined here and makes
 * such a call within the C library (freopen, mkstemp, fts_read) finds the path in the other modes
 * only. The rest of this library makes system calls, of which trap.c's are in a signal handler,
 * where NEXT may not look a name up.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../preload/preload.h"
#include "shai.h"

/* Fills in the place and returns true if the path is to be opened beneath a capability. */
static bool
covered(struct shai_place *place, const char *path)
{
	return shai_mode() == SHAI_MODE_BASELINE && shai_place_covered(place, path);
}

/* Declares mode, and takes it from the variable arguments if the flags say that there is one. */
#define MODE_ARGUMENT(mode, flags)                                                                 \
	int mode = 0; /* a mode_t, promoted */                                                     \
	if ((flags & O_CREAT) != 0) {                                                              \
		va_list arguments;                                                                 \
		va_start(arguments, flags);                                                        \
		mode = va_arg(arguments, int);                                                     \
		va_end(arguments);                                                                 \
	}

INTERPOSED int
open(const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (covered(&place, path))
		return shai_place_open(&place, flags, (mode_t)mode);
	return NEXT(open)(path, flags, mode);
}

INTERPOSED int
openat(int directory, const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (covered(&place, path))
		return shai_place_open(&place, flags, (mode_t)mode);
	return NEXT(openat)(directory, path, flags, mode);
}

INTERPOSED int
creat(const char *path, mode_t mode)
{
	return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

INTERPOSED FILE *
fopen(const char *restrict path, const char *restrict mode)
{
	struct shai_place place;

	if (covered(&place, path))
		return shai_place_stream(&place, mode);
	return NEXT(fopen)(path, mode);
}

INTERPOSED DIR *
opendir(const char *path)
{
	struct shai_place place;
	DIR *directory = NULL;
	int descriptor;

	if (!covered(&place, path))
		return NEXT(opendir)(path);
	descriptor = shai_place_open(&place, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (descriptor >= 0 && (directory = fdopendir(descriptor)) == NULL)
		shai_place_release(&place, descriptor);
	return directory;
}

static int
status_of(const struct shai_place *place, struct stat *status, int flags)
{
	if (place->placement == SHAI_PLACE_RESERVED)
		return fstat(place->descriptor, status);
	return NEXT(fstatat)(place->descriptor, place->name, status, flags);
}

INTERPOSED int
stat(const char *restrict path, struct stat *restrict status)
{
	struct shai_place place;

	return covered(&place, path) ? status_of(&place, status, 0) : NEXT(stat)(path, status);
}

INTERPOSED int
lstat(const char *restrict path, struct stat *restrict status)
{
	struct shai_place place;

	return covered(&place, path) ? status_of(&place, status, AT_SYMLINK_NOFOLLOW)
				     : NEXT(lstat)(path, status);
}

INTERPOSED int
fstatat(int directory, const char *restrict path, struct stat *restrict status, int flags)
{
	struct shai_place place;

	return covered(&place, path) ? status_of(&place, status, flags)
				     : NEXT(fstatat)(directory, path, status, flags);
}

static int
access_of(const struct shai_place *place, int mode, int flags)
{
	if (place->placement == SHAI_PLACE_RESERVED)
		return shai_place_access_reserved(place, mode);
	return NEXT(faccessat)(place->descriptor, place->name, mode, flags);
}

INTERPOSED int
access(const char *path, int mode)
{
	struct shai_place place;

	return covered(&place, path) ? access_of(&place, mode, 0) : NEXT(access)(path, mode);
}

INTERPOSED int
eaccess(const char *path, int mode)
{
	struct shai_place place;

	return covered(&place, path) ? access_of(&place, mode, AT_EACCESS)
				     : NEXT(eaccess)(path, mode);
}

INTERPOSED int
faccessat(int directory, const char *path, int mode, int flags)
{
	struct shai_place place;

	return covered(&place, path) ? access_of(&place, mode, flags)
				     : NEXT(faccessat)(directory, path, mode, flags);
}
