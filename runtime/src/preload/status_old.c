/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The names of the stat family in programs built against glibc before 2.33. The
 * version argument chose among layouts that 64-bit systems never had.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "preload.h"

int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat(int version, int descriptor, struct stat *status);
int __fxstat64(int version, int descriptor, struct stat64 *status);
int __fxstatat(int version, int directory, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int directory, const char *path, struct stat64 *status, int flags);

INTERPOSED int
__xstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return stat(path, status);
}

INTERPOSED int
__xstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return stat64(path, status);
}

INTERPOSED int
__lxstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return lstat(path, status);
}

INTERPOSED int
__lxstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return lstat64(path, status);
}

INTERPOSED int
__fxstat(int version, int descriptor, struct stat *status)
{
	(void)version;
	return fstat(descriptor, status);
}

INTERPOSED int
__fxstat64(int version, int descriptor, struct stat64 *status)
{
	(void)version;
	return fstat64(descriptor, status);
}

INTERPOSED int
__fxstatat(int version, int directory, const char *path, struct stat *status, int flags)
{
	(void)version;
	return fstatat(directory, path, status, flags);
}

INTERPOSED int
__fxstatat64(int version, int directory, const char *path, struct stat64 *status, int flags)
{
	(void)version;
	return fstatat64(directory, path, status, flags);
}
