/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stat family, access, and file system status.
 *
 * fstat goes to the fstat system call: the C library uses newfstatat with an
 * empty path, which the filter cannot tell from one with a path.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout, also the kernel's");
_Static_assert(sizeof(struct statvfs) == sizeof(struct statvfs64), "one layout");

INTERPOSED int
fstat(int descriptor, struct stat *status)
{
	return (int)syscall(SYS_fstat, descriptor, status);
}

INTERPOSED int
fstat64(int descriptor, struct stat64 *status)
{
	return (int)syscall(SYS_fstat, descriptor, status);
}

INTERPOSED int
stat(const char *path, struct stat *status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_status(&place, true, status);
	return NEXT(stat)(path, status);
}

INTERPOSED int
stat64(const char *path, struct stat64 *status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_status(&place, true, (struct stat *)status);
	return NEXT(stat64)(path, status);
}

INTERPOSED int
lstat(const char *path, struct stat *status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_status(&place, false, status);
	return NEXT(lstat)(path, status);
}

INTERPOSED int
lstat64(const char *path, struct stat64 *status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return shai_place_status(&place, false, (struct stat *)status);
	return NEXT(lstat64)(path, status);
}

/* Whether path is empty and flags say that the descriptor itself is meant. */
static bool
means_descriptor(int descriptor, const char *path, int flags)
{
	return descriptor >= 0 && (flags & AT_EMPTY_PATH) != 0 && path != NULL && path[0] == '\0';
}

INTERPOSED int
fstatat(int directory, const char *path, struct stat *status, int flags)
{
	struct shai_place place;

	if (means_descriptor(directory, path, flags))
		return (int)syscall(SYS_fstat, directory, status);
	if (shai_place_covered(&place, path))
		return shai_place_status(&place, (flags & AT_SYMLINK_NOFOLLOW) == 0, status);
	return NEXT(fstatat)(directory, path, status, flags);
}

INTERPOSED int
fstatat64(int directory, const char *path, struct stat64 *status, int flags)
{
	struct shai_place place;

	if (means_descriptor(directory, path, flags))
		return (int)syscall(SYS_fstat, directory, status);
	if (shai_place_covered(&place, path))
		return shai_place_status(
		    &place, (flags & AT_SYMLINK_NOFOLLOW) == 0, (struct stat *)status);
	return NEXT(fstatat64)(directory, path, status, flags);
}

static struct statx_timestamp
timestamp(struct timespec time)
{
	return (struct statx_timestamp){.tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec};
}

/* Fills in the basic fields. The birth time is missing, and the mask says so. */
static void
fill_statx(const struct stat *status, struct statx *out)
{
	memset(out, 0, sizeof(*out));
	out->stx_mask = STATX_BASIC_STATS;
	out->stx_blksize = (uint32_t)status->st_blksize;
	out->stx_nlink = (uint32_t)status->st_nlink;
	out->stx_uid = status->st_uid;
	out->stx_gid = status->st_gid;
	out->stx_mode = (uint16_t)status->st_mode;
	out->stx_ino = status->st_ino;
	out->stx_size = (uint64_t)status->st_size;
	out->stx_blocks = (uint64_t)status->st_blocks;
	out->stx_atime = timestamp(status->st_atim);
	out->stx_mtime = timestamp(status->st_mtim);
	out->stx_ctime = timestamp(status->st_ctim);
	out->stx_rdev_major = major(status->st_rdev);
	out->stx_rdev_minor = minor(status->st_rdev);
	out->stx_dev_major = major(status->st_dev);
	out->stx_dev_minor = minor(status->st_dev);
}

INTERPOSED int
statx(int directory, const char *restrict path, int flags, unsigned int mask,
    struct statx *restrict out)
{
	struct shai_place place;
	struct stat status;
	int result;

	if (means_descriptor(directory, path, flags))
		result = (int)syscall(SYS_fstat, directory, &status);
	else if (shai_place_covered(&place, path))
		result = shai_place_status(&place, (flags & AT_SYMLINK_NOFOLLOW) == 0, &status);
	else
		return NEXT(statx)(directory, path, flags, mask, out);
	if (result == 0)
		fill_statx(&status, out);
	return result;
}

/* The monitor answers faccessat. Whether a file is readable is found out natively. */
static int
access_place(const struct shai_place *place, int mode)
{
	int descriptor;

	if (place->placement == SHAI_PLACE_RESERVED)
		return shai_place_access_reserved(place, mode);
	if ((mode & (W_OK | X_OK)) != 0 || (place->rights & SHAI_RIGHT_WRITE) != 0)
		return (int)syscall(SYS_faccessat, place->descriptor, place->name, mode);
	descriptor = shai_place_open(place, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (descriptor < 0 && errno != ENOENT && errno != ENOTDIR)
		return (int)syscall(SYS_faccessat, place->descriptor, place->name, mode);
	if (descriptor < 0)
		return -1;
	shai_place_release(place, descriptor);
	return 0;
}

INTERPOSED int
access(const char *path, int mode)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return access_place(&place, mode);
	return NEXT(access)(path, mode);
}

INTERPOSED int
faccessat(int directory, const char *path, int mode, int flags)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return access_place(&place, mode);
	return NEXT(faccessat)(directory, path, mode, flags);
}

static int
statvfs_place(const struct shai_place *place, struct statvfs *status)
{
	int descriptor = shai_place_look(place, true);
	int result;

	if (descriptor < 0)
		return -1;
	result = fstatvfs(descriptor, status);
	shai_place_release(place, descriptor);
	return result;
}

INTERPOSED int
statvfs(const char *restrict path, struct statvfs *restrict status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return statvfs_place(&place, status);
	return NEXT(statvfs)(path, status);
}

INTERPOSED int
statvfs64(const char *restrict path, struct statvfs64 *restrict status)
{
	struct shai_place place;

	if (shai_place_covered(&place, path))
		return statvfs_place(&place, (struct statvfs *)status);
	return NEXT(statvfs64)(path, status);
}
