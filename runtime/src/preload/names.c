/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Making, removing, renaming and linking names, and their modes and times.
 *
 * symlink, mknod and chown are left out on purpose: no task may make such files beneath
 * a capability, and by plain path these calls are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "preload.h"

/* Makes a system call on a place, unless the place is a pipe or channel. */
#define ON_DIRECTORY(place, call)                                                                  \
	((place).placement == SHAI_PLACE_RESERVED ? shai_place_refuse() : (int)(call))

INTERPOSED int
mkdir(const char *path, mode_t mode)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(mkdir)(path, mode);
	return ON_DIRECTORY(place, syscall(SYS_mkdirat, place.descriptor, place.name, mode));
}

INTERPOSED int
mkdirat(int directory, const char *path, mode_t mode)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(mkdirat)(directory, path, mode);
	return ON_DIRECTORY(place, syscall(SYS_mkdirat, place.descriptor, place.name, mode));
}

static int
unlink_place(const struct shai_place *place, int flags)
{
	return ON_DIRECTORY(*place, syscall(SYS_unlinkat, place->descriptor, place->name, flags));
}

INTERPOSED int
unlink(const char *path)
{
	struct shai_place place;

	return shai_place_covered(&place, path) ? unlink_place(&place, 0) : NEXT(unlink)(path);
}

INTERPOSED int
rmdir(const char *path)
{
	struct shai_place place;

	return shai_place_covered(&place, path) ? unlink_place(&place, AT_REMOVEDIR)
						: NEXT(rmdir)(path);
}

INTERPOSED int
unlinkat(int directory, const char *path, int flags)
{
	struct shai_place place;

	return shai_place_covered(&place, path) ? unlink_place(&place, flags)
						: NEXT(unlinkat)(directory, path, flags);
}

INTERPOSED int
remove(const char *path)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(remove)(path);
	if (unlink_place(&place, 0) == 0)
		return 0;
	return errno == EISDIR ? unlink_place(&place, AT_REMOVEDIR) : -1;
}

/*
 * Places the two paths of a rename or link. If one of them is outside, the monitor
 * decides about the call. Returns false if both are outside.
 */
static bool
place_two(
    struct shai_place *from, const char *from_path, struct shai_place *to, const char *to_path)
{
	bool from_covered = shai_place_covered(from, from_path);
	bool to_covered = shai_place_covered(to, to_path);

	return from_covered || to_covered;
}

static bool
either_reserved(const struct shai_place *from, const struct shai_place *to)
{
	return from->placement == SHAI_PLACE_RESERVED || to->placement == SHAI_PLACE_RESERVED;
}

/* A path outside stays relative to its original directory. */
static int
directory_of(const struct shai_place *place, int given)
{
	return place->placement == SHAI_PLACE_OUTSIDE ? given : place->descriptor;
}

INTERPOSED int
renameat(int from_directory, const char *from_path, int to_directory, const char *to_path)
{
	struct shai_place from, to;

	if (!place_two(&from, from_path, &to, to_path))
		return NEXT(renameat)(from_directory, from_path, to_directory, to_path);
	if (either_reserved(&from, &to))
		return shai_place_refuse();
	return (int)syscall(SYS_renameat, directory_of(&from, from_directory), from.name,
	    directory_of(&to, to_directory), to.name);
}

INTERPOSED int
rename(const char *from_path, const char *to_path)
{
	struct shai_place from, to;

	if (!place_two(&from, from_path, &to, to_path))
		return NEXT(rename)(from_path, to_path);
	return renameat(AT_FDCWD, from_path, AT_FDCWD, to_path);
}

INTERPOSED int
renameat2(int from_directory, const char *from_path, int to_directory, const char *to_path,
    unsigned int flags)
{
	struct shai_place from, to;

	if (!place_two(&from, from_path, &to, to_path))
		return NEXT(renameat2)(from_directory, from_path, to_directory, to_path, flags);
	if (either_reserved(&from, &to))
		return shai_place_refuse();
	return (int)syscall(SYS_renameat2, directory_of(&from, from_directory), from.name,
	    directory_of(&to, to_directory), to.name, flags);
}

INTERPOSED int
linkat(int from_directory, const char *from_path, int to_directory, const char *to_path, int flags)
{
	struct shai_place from, to;

	if (!place_two(&from, from_path, &to, to_path))
		return NEXT(linkat)(from_directory, from_path, to_directory, to_path, flags);
	if (either_reserved(&from, &to))
		return shai_place_refuse();
	return (int)syscall(SYS_linkat, directory_of(&from, from_directory), from.name,
	    directory_of(&to, to_directory), to.name, flags);
}

INTERPOSED int
link(const char *from_path, const char *to_path)
{
	struct shai_place from, to;

	if (!place_two(&from, from_path, &to, to_path))
		return NEXT(link)(from_path, to_path);
	return linkat(AT_FDCWD, from_path, AT_FDCWD, to_path, 0);
}

INTERPOSED int
chmod(const char *path, mode_t mode)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(chmod)(path, mode);
	return ON_DIRECTORY(place, syscall(SYS_fchmodat, place.descriptor, place.name, mode));
}

INTERPOSED int
utimensat(int directory, const char *path, const struct timespec times[2], int flags)
{
	struct shai_place place;

	if (!shai_place_covered(&place, path))
		return NEXT(utimensat)(directory, path, times, flags);
	return ON_DIRECTORY(
	    place, syscall(SYS_utimensat, place.descriptor, place.name, times, flags));
}

INTERPOSED int
utimes(const char *path, const struct timeval times[2])
{
	struct shai_place place;
	struct timespec precise[2];

	if (!shai_place_covered(&place, path))
		return NEXT(utimes)(path, times);
	for (int i = 0; times != NULL && i < 2; i++)
		TIMEVAL_TO_TIMESPEC(&times[i], &precise[i]);
	return ON_DIRECTORY(place, syscall(SYS_utimensat, place.descriptor, place.name,
				       times != NULL ? precise : NULL, 0));
}
