/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"
#include "directories.h"
#include "preload.h"
#include "registration.h"

void *
shai_next_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (function == NULL) {
		(void)fprintf(stderr, "libshai: the C library has no %s\n", name);
		_exit(71);
	}
	return function;
}

/* Restores the slash that normalising removed. */
static void
keep_slash(struct shai_place *place, const char *path)
{
	size_t length = strlen(path);
	size_t normal = strlen(place->buffer);

	if (path[length - 1] != '/' || normal + 2 > sizeof(place->buffer))
		return;
	place->buffer[normal] = '/';
	place->buffer[normal + 1] = '\0';
}

void
shai_place_path(struct shai_place *place, const char *path)
{
	const struct shai_table *table = shai_table_current();
	const struct shai_capability *capability = NULL;
	const char *rest = NULL;

	place->placement = SHAI_PLACE_OUTSIDE;
	place->descriptor = AT_FDCWD;
	place->name = path;
	if (table->count == 0 || path == NULL ||
	    shai_path_normalise(path, place->buffer, sizeof(place->buffer)) != 0)
		return;
	capability = shai_table_find(table, place->buffer, &rest);
	if (capability == NULL)
		return;
	place->rights = capability->rights;
	place->placement = SHAI_PLACE_RESERVED;
	if (capability->kind == SHAI_KIND_DIRECTORY) {
		place->placement = SHAI_PLACE_DIRECTORY;
		if (strcmp(rest, ".") != 0)
			keep_slash(place, path);
	}
	place->descriptor = shai_directory_of(capability->number, &rest);
	place->name = rest;
}

bool
shai_place_covered(struct shai_place *place, const char *path)
{
	shai_place_path(place, path);
	return place->placement != SHAI_PLACE_OUTSIDE;
}

int
shai_place_open(const struct shai_place *place, int flags, mode_t mode)
{
	bool asks = (place->rights & SHAI_RIGHT_ASK) != 0;
	int descriptor = -1;

	if (place->placement == SHAI_PLACE_RESERVED) {
		/*
		 * The descriptor was closed before, or never given: fail now, not at
		 * the first read.
		 */
		if (fcntl(place->descriptor, F_GETFD) < 0) {
			errno = ENXIO;
			return -1;
		}
		return place->descriptor;
	}
	/*
	 * Where a task may make names and open nothing, the kernel would make the file before
	 * it refuses to open it.
	 */
	if (!asks || (flags & O_CREAT) == 0)
		descriptor = (int)syscall(SYS_openat, place->descriptor, place->name, flags, mode);
	else
		errno = EACCES;
	if (descriptor < 0 && errno == EACCES && asks)
		descriptor = shai_backend_ask_open(place->descriptor, place->name, flags, mode);
	return descriptor;
}

/*
 * Opens a file for its metadata. The filter sends every O_PATH open to the monitor,
 * because Landlock allows all of them; a plain open beneath a capability runs
 * natively. So try a plain open, but only if the task cannot write: closing its
 * descriptor drops the process's record locks on the file (unlike that of an O_PATH
 * open), and Lucene reads the metadata of its lock file while it holds the lock.
 * O_NONBLOCK, because the open of a FIFO would wait for its writer.
 */
int
shai_place_look(const struct shai_place *place, bool follow)
{
	int flags = O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
	int descriptor;

	if ((place->rights & SHAI_RIGHT_WRITE) == 0) {
		descriptor = shai_place_open(place, flags | O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (descriptor >= 0 || errno == ENOENT || errno == ENOTDIR)
			return descriptor;
	}
	return shai_place_open(place, flags | O_PATH, 0);
}

void
shai_place_release(const struct shai_place *place, int descriptor)
{
	int error = errno;

	if (place->placement != SHAI_PLACE_RESERVED)
		(void)close(descriptor);
	errno = error;
}

int
shai_place_status(const struct shai_place *place, bool follow, struct stat *status)
{
	int descriptor = shai_place_look(place, follow);
	int result;

	if (descriptor < 0)
		return -1;
	result = (int)syscall(SYS_fstat, descriptor, status);
	shai_place_release(place, descriptor);
	return result;
}

int
shai_place_access_reserved(const struct shai_place *place, int mode)
{
	if (((mode & R_OK) != 0 && (place->rights & SHAI_RIGHT_READ) == 0) ||
	    ((mode & W_OK) != 0 && (place->rights & SHAI_RIGHT_WRITE) == 0) || (mode & X_OK) != 0) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

int
shai_place_refuse(void)
{
	errno = EPERM;
	return -1;
}
