/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The refused system calls that libshai can finish: those that open a file or read
 * its metadata by name, and those that write to a checked number. All others stay
 * refused.
 */
#ifndef SHAI_REFUSED_CALL_H
#define SHAI_REFUSED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "shai_requests.h"

#define SHAI_CALL_ARGUMENTS 6

enum shai_call_kind {
	SHAI_CALL_OPEN = 1, /* descriptor: the directory that path is relative to */
	SHAI_CALL_STATUS,   /* result: address of the struct stat */
	SHAI_CALL_ACCESS,   /* mode: R_OK and the like */
	SHAI_CALL_WRITE /* descriptor: the number to write to; the other arguments are the caller's
			 */
};

struct shai_refused_call {
	enum shai_call_kind kind;
	int descriptor;
	uint64_t path; /* address */
	int flags;     /* of open(2): what to open for the call */
	uint32_t mode;
	uint64_t result; /* address */
};

/*
 * Finds out what a call asked for. Returns false if it is none of these kinds, or has
 * flags that change its meaning.
 */
bool shai_refused_call(
    int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], struct shai_refused_call *out);

/*
 * Reports whether the kernel refuses writes to a reserved number only because each
 * needs a decision.
 */
bool shai_number_is_checked(int number);

/* How to ask for the path of a refused call. */
enum shai_base {
	SHAI_BASE_NONE,      /* with the path in out */
	SHAI_BASE_DIRECTORY, /* with the path in out, relative to the call's directory */
	SHAI_BASE_OUTSIDE    /* not at all: the path leads out of a capability's directory */
};

/*
 * Finds out how to ask. A path relative to a capability's number becomes absolute,
 * because the other side does not have the number. out receives the path. A path that
 * does not fit counts as outside.
 */
enum shai_base shai_call_base(int descriptor, const char *path, char out[SHAI_REQUEST_PATH_MAX]);

/*
 * Finishes access(2) for a file that could be opened with the call's flags: if mode
 * asks for it, checks whether anybody may execute the file. Returns 0, or -1 with
 * errno.
 */
int shai_access_descriptor(int descriptor, uint32_t mode);

#endif
