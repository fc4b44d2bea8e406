/* SPDX-License-Identifier: BSD-2-Clause
 *
 * open and related functions, and fopen.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "preload.h"

/* Entry points of programs compiled with _FORTIFY_SOURCE; no header declares them. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);

static bool
takes_mode(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

/*
 * Declares mode, and takes it from the variable arguments if the flags say that there
 * is one.
 */
#define MODE_ARGUMENT(mode, flags)                                                                 \
	mode_t mode = 0;                                                                           \
	if (takes_mode(flags)) {                                                                   \
		va_list arguments;                                                                 \
		va_start(arguments, flags);                                                        \
		mode = va_arg(arguments, mode_t);                                                  \
		va_end(arguments);                                                                 \
	}

INTERPOSED int
open(const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (shai_place_covered(&place, path))
		return shai_place_open(&place, flags, mode);
	return NEXT(open)(path, flags, mode);
}

INTERPOSED int
open64(const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (shai_place_covered(&place, path))
		return shai_place_open(&place, flags, mode);
	return NEXT(open64)(path, flags, mode);
}

INTERPOSED int
openat(int directory, const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (shai_place_covered(&place, path))
		return shai_place_open(&place, flags, mode);
	return NEXT(openat)(directory, path, flags, mode);
}

INTERPOSED int
openat64(int directory, const char *path, int flags, ...)
{
	struct shai_place place;

	MODE_ARGUMENT(mode, flags)
	if (shai_place_covered(&place, path))
		return shai_place_open(&place, flags, mode);
	return NEXT(openat64)(directory, path, flags, mode);
}

INTERPOSED int
__open_2(const char *path, int flags)
{
	return open(path, flags);
}

INTERPOSED int
__open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

INTERPOSED int
__openat_2(int directory, const char *path, int flags)
{
	return openat(directory, path, flags);
}

INTERPOSED int
__openat64_2(int directory, const char *path, int flags)
{
	return openat64(directory, path, flags);
}

INTERPOSED int
creat(const char *path, mode_t mode)
{
	return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

INTERPOSED int
creat64(const char *path, mode_t mode)
{
	return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

INTERPOSED FILE *
fopen(const char *path, const char *mode)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_stream(&place, mode);
	return NEXT(fopen)(path, mode);
}

INTERPOSED FILE *
fopen64(const char *path, const char *mode)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_stream(&place, mode);
	return NEXT(fopen64)(path, mode);
}

static int
truncate_place(const struct shai_place *place, off_t length)
{
	int descriptor;
	int result;

	if (place->placement == SHAI_PLACE_RESERVED)
		return shai_place_refuse();
	descriptor = shai_place_open(place, O_WRONLY | O_CLOEXEC, 0);
	if (descriptor < 0)
		return -1;
	result = ftruncate(descriptor, length);
	shai_place_release(place, descriptor);
	return result;
}

INTERPOSED int
truncate(const char *path, off_t length)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return truncate_place(&place, length);
	return NEXT(truncate)(path, length);
}

INTERPOSED int
truncate64(const char *path, off64_t length)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return truncate_place(&place, length);
	return NEXT(truncate64)(path, length);
}
