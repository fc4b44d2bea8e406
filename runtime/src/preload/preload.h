/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The preload layer: the C library's path-taking functions, redefined for
 * unmodified programs. A path that a capability covers becomes a native call
 * relative to the capability's descriptor; any other path goes to the C library's
 * own function, as it came, and the kernel or the monitor decides about it.
 *
 * The layer grants nothing. A program that gets round it (raw system calls,
 * paths relative to a directory it has opened itself) is decided about the slow way.
 *
 * Native calls are made as system calls: the C library's functions are either
 * interposed here or use newfstatat(2), whose filter rule cannot see the path.
 */
#ifndef SHAI_PRELOAD_H
#define SHAI_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "paths.h"

struct stat;

/* Exported in spite of -fvisibility=hidden: these names are the point. */
#define INTERPOSED __attribute__((visibility("default")))

enum shai_placement {
	SHAI_PLACE_OUTSIDE,   /* no capability covers the path */
	SHAI_PLACE_DIRECTORY, /* name beneath descriptor */
	SHAI_PLACE_RESERVED   /* the path is the descriptor: a pipe or a channel */
};

struct shai_place {
	enum shai_placement placement;
	int descriptor;   /* AT_FDCWD when outside */
	const char *name; /* the path as given when outside; else into buffer */
	uint16_t rights;
	char buffer[SHAI_PATH_MAX]; /* the normal path */
};

/*
 * Finds out where a path is. NULL, relative and overlong paths are outside, for
 * the real function to complain about. A trailing slash of a path beneath a
 * directory is kept, for it demands a directory.
 */
void shai_place_path(struct shai_place *place, const char *path);

/*
 * The beginning of most functions here: returns true, with the place filled in,
 * when a capability covers the path.
 */
bool shai_place_covered(struct shai_place *place, const char *path);

/*
 * Opens what the place names. Reserved descriptors are returned themselves: the
 * program may close them, and then has no second one.
 */
int shai_place_open(const struct shai_place *place, int flags, mode_t mode);

/*
 * A descriptor for looking at what the place names, not for reading it, to be
 * given back with shai_place_release. Returns -1 with errno.
 */
int shai_place_look(const struct shai_place *place, bool follow);
void shai_place_release(const struct shai_place *place, int descriptor);

/* fstat(2) of what the place names. */
int shai_place_status(const struct shai_place *place, bool follow, struct stat *status);

/* EPERM for what cannot be done to a pipe's or channel's name; returns -1. */
int shai_place_refuse(void);

/* The next definition of a function, after this library's; ends the process if none. */
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
