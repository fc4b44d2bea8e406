/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "preload.h"

/* Returns the open flags of an fopen mode, or -1. */
static int
flags_of_mode(const char *mode)
{
	int flags;

	switch (mode[0]) {
	case 'r':
		flags = O_RDONLY;
		break;
	case 'w':
		flags = O_WRONLY | O_CREAT | O_TRUNC;
		break;
	case 'a':
		flags = O_WRONLY | O_CREAT | O_APPEND;
		break;
	default:
		return -1;
	}
	for (const char *p = mode + 1; *p != '\0' && *p != ','; p++) {
		if (*p == '+')
			flags = (flags & ~O_ACCMODE) | O_RDWR;
		else if (*p == 'x')
			flags |= O_EXCL;
		else if (*p == 'e')
			flags |= O_CLOEXEC;
	}
	return flags;
}

FILE *
shai_place_stream(const struct shai_place *place, const char *mode)
{
	int flags = flags_of_mode(mode);
	int descriptor;
	FILE *stream;

	if (flags < 0) {
		errno = EINVAL;
		return NULL;
	}
	descriptor = shai_place_open(place, flags, 0666);
	if (descriptor < 0)
		return NULL;
	stream = fdopen(descriptor, mode);
	if (stream == NULL)
		shai_place_release(place, descriptor);
	return stream;
}
