/* SPDX-License-Identifier: BSD-2-Clause */
#include "refused_call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "registration.h"

/*
 * Computes the flags for open(2) from those of fstatat(2). Returns false for flags
 * that it does not support.
 */
static bool
look(struct shai_refused_call *out, int descriptor, uint64_t path, int flags)
{
	out->kind = SHAI_CALL_STATUS;
	out->descriptor = descriptor;
	out->path = path;
	out->flags = O_PATH | ((flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
	return (flags & ~AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * The file is opened for reading or writing to learn whether it may be read or
 * written.
 */
static bool
try_access(struct shai_refused_call *out, int descriptor, uint64_t path, int mode, int flags)
{
	out->kind = SHAI_CALL_ACCESS;
	out->descriptor = descriptor;
	out->path = path;
	out->mode = (uint32_t)mode;
	out->flags = O_PATH;
	if ((mode & (R_OK | W_OK)) != 0)
		out->flags = O_NONBLOCK | O_NOCTTY | ((mode & W_OK) == 0 ? O_RDONLY : O_RDWR);
	return (flags & ~AT_EACCESS) == 0 && (mode & ~(R_OK | W_OK | X_OK)) == 0;
}

static bool
open_file(struct shai_refused_call *out, int descriptor, const uint64_t *arguments)
{
	out->kind = SHAI_CALL_OPEN;
	out->descriptor = descriptor;
	out->path = arguments[0];
	out->flags = (int)arguments[1];
	out->mode = (uint32_t)arguments[2];
	return true;
}

bool
shai_refused_call(
    int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], struct shai_refused_call *out)
{
	*out = (struct shai_refused_call){.descriptor = AT_FDCWD};
	switch (number) {
	case SYS_open:
		return open_file(out, AT_FDCWD, arguments);
	case SYS_openat:
		return open_file(out, (int)arguments[0], arguments + 1);
	case SYS_fstatat:
		out->result = arguments[2];
		return look(out, (int)arguments[0], arguments[1], (int)arguments[3]);
	case SYS_access:
	case SYS_eaccess:
		return try_access(out, AT_FDCWD, arguments[0], (int)arguments[1], 0);
	case SYS_faccessat:
		return try_access(
		    out, (int)arguments[0], arguments[1], (int)arguments[2], (int)arguments[3]);
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
		out->kind = SHAI_CALL_WRITE;
		out->descriptor = (int)arguments[0];
		return shai_number_is_checked(out->descriptor);
	default:
		return false;
	}
}

bool
shai_number_is_checked(int number)
{
	return number == SHAI_FD_CONNECTION_CHECKED ||
	       (number >= SHAI_FD_CHANNEL_CHECKED && number < SHAI_FD_RESERVED_END);
}

static const struct shai_capability *
directory_of_number(int number)
{
	const struct shai_table *table = shai_table_current();

	for (size_t i = 0; i < table->count; i++)
		if (table->entry[i].number == number && table->entry[i].kind == SHAI_KIND_DIRECTORY)
			return &table->entry[i];
	return NULL;
}

enum shai_base
shai_call_base(int descriptor, const char *path, char out[SHAI_REQUEST_PATH_MAX])
{
	const struct shai_capability *capability = NULL;
	size_t length = strlen(path);

	if (length >= SHAI_REQUEST_PATH_MAX)
		return SHAI_BASE_OUTSIDE;
	if (path[0] != '/' && descriptor != AT_FDCWD)
		capability = directory_of_number(descriptor);
	if (capability != NULL)
		return shai_path_beneath(capability->prefix, path, out, SHAI_REQUEST_PATH_MAX) == 0
			   ? SHAI_BASE_NONE
			   : SHAI_BASE_OUTSIDE;
	memcpy(out, path, length + 1);
	return path[0] == '/' || descriptor == AT_FDCWD ? SHAI_BASE_NONE : SHAI_BASE_DIRECTORY;
}

int
shai_access_descriptor(int descriptor, uint32_t mode)
{
	struct stat status;

	if ((mode & X_OK) == 0)
		return 0;
	if (fstat(descriptor, &status) != 0)
		return -1;
	if ((status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0)
		return 0;
	errno = EACCES;
	return -1;
}
