/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The preload layer: the C library's functions that take paths, redefined for
 * unmodified programs. A path that a capability covers becomes a native call relative to
 * the capability's descriptor. Any other path goes to the C library's own function
 * unchanged, and the kernel or the monitor decides about it.
 *
 * The layer grants nothing. If a program bypasses it (by raw system calls, or paths
 * relative to a directory that it has opened itself), the monitor decides about its
 * calls.
 *
 * Native calls are made as system calls: the C library's functions are either
 * interposed here or use newfstatat(2), whose filter rule cannot see the path.
 */
#ifndef SHAI_PRELOAD_H
#define SHAI_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "paths.h"

struct stat;

/* Exported in spite of -fvisibility=hidden: these names must be visible. */
#define INTERPOSED __attribute__((visibility("default")))

enum shai_placement {
	SHAI_PLACE_OUTSIDE,   /* no capability covers the path */
	SHAI_PLACE_DIRECTORY, /* name beneath descriptor */
	SHAI_PLACE_RESERVED   /* the path names the descriptor: a pipe or a channel */
};

struct shai_place {
	enum shai_placement placement;
	int descriptor;   /* AT_FDCWD if outside */
	const char *name; /* the path as given if outside; else points into buffer */
	uint16_t rights;
	char buffer[SHAI_PATH_MAX]; /* the normal path */
};

/*
 * Finds the place of a path. NULL, relative and too long paths are outside, so that
 * the real function reports the error. A trailing slash of a path beneath a directory
 * is kept, because it requires a directory.
 */
void shai_place_path(struct shai_place *place, const char *path);

/*
 * Fills in the place and returns true if a capability covers the path. Most functions
 * here begin with this call.
 */
bool shai_place_covered(struct shai_place *place, const char *path);

/*
 * Opens the file that the place names. A reserved descriptor is returned itself: if
 * the program closes it, there is no second one.
 */
int shai_place_open(const struct shai_place *place, int flags, mode_t mode);

/* Does the work of fopen(3) on the file that the place names. Returns NULL with errno. */
FILE *shai_place_stream(const struct shai_place *place, const char *mode);

/*
 * Opens the file that the place names for its metadata only. The caller releases the
 * descriptor with shai_place_release. Returns -1 with errno.
 */
int shai_place_look(const struct shai_place *place, bool follow);
void shai_place_release(const struct shai_place *place, int descriptor);

/* Calls fstat(2) on the file that the place names. */
int shai_place_status(const struct shai_place *place, bool follow, struct stat *status);

/* Does the work of access(2) on a pipe or channel, by the task's rights to it. */
int shai_place_access_reserved(const struct shai_place *place, int mode);

/* Returns -1 with EPERM, for calls that cannot change the name of a pipe or channel. */
int shai_place_refuse(void);

/*
 * Returns the next definition of a function, after this library's. Ends the process
 * if there is none.
 */
void *shai_next_function(const char *name);

/* The C library's own version of an interposed function. */
#define NEXT(function)                                                                             \
	(__extension__({                                                                           \
		static void *_Atomic next_;                                                        \
		if (next_ == NULL)                                                                 \
			next_ = shai_next_function(#function);                                     \
		(__typeof__(&function))next_;                                                      \
	}))

#endif
