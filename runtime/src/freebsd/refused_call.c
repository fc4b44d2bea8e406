/* SPDX-License-Identifier: BSD-2-Clause */
#include "refused_call.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "registration.h"

/* The O_ flags that look at what an AT_ flag says. -1 for flags that mean something else. */
static int
look_flags(uint64_t at)
{
	if ((at & ~(uint64_t)(AT_SYMLINK_NOFOLLOW | AT_EACCESS)) != 0)
		return -1;
	return O_PATH | ((at & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
}

static bool
look(struct shai_refused_call *out, enum shai_call_kind kind, uint64_t descriptor, uint64_t path,
    uint64_t at)
{
	out->kind = kind;
	out->descriptor = (int)descriptor;
	out->path = path;
	out->flags = look_flags(at);
	return out->flags != -1;
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
		return look(out, SHAI_CALL_STATUS, arguments[0], arguments[1], arguments[3]);
	case SYS_access:
	case SYS_eaccess:
		out->mode = (uint32_t)arguments[1];
		return look(out, SHAI_CALL_ACCESS, (uint64_t)AT_FDCWD, arguments[0], 0);
	case SYS_faccessat:
		out->mode = (uint32_t)arguments[2];
		return look(out, SHAI_CALL_ACCESS, arguments[0], arguments[1], arguments[3]);
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
	return mode == F_OK ? 0 : faccessat(descriptor, "", (int)mode, AT_EMPTY_PATH);
}
