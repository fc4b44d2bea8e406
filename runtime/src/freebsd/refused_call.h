/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which refused system calls something can be done about: those that open or look
 * at a file by its name, and those that write to a number that is checked. All
 * others stay refused.
 */
#ifndef SHAI_REFUSED_CALL_H
#define SHAI_REFUSED_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "shai_requests.h"

#define SHAI_CALL_ARGUMENTS 6

enum shai_call_kind {
	SHAI_CALL_OPEN = 1, /* descriptor: what path is relative to */
	SHAI_CALL_STATUS,   /* result: where the struct stat goes */
	SHAI_CALL_ACCESS,   /* mode: R_OK and the like */
	SHAI_CALL_WRITE     /* descriptor: what is written to; the rest as the caller passed it */
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
 * What a call asked for. False when it is none of these kinds, or has flags that
 * change its meaning.
 */
bool shai_refused_call(
    int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], struct shai_refused_call *out);

/*
 * Whether the kernel refuses writing to a reserved number only because somebody is
 * to be asked first.
 */
bool shai_number_is_checked(int number);

/* How a path of a refused call is to be asked for. */
enum shai_base {
	SHAI_BASE_NONE,      /* as out has it */
	SHAI_BASE_DIRECTORY, /* as out has it, with the call's directory sent along */
	SHAI_BASE_OUTSIDE    /* not at all: it leads out of a capability's directory */
};

/*
 * Works that out: a path relative to a capability's number becomes an absolute one,
 * for who is asked does not have the number. out has the path; what does not fit is
 * outside.
 */
enum shai_base shai_call_base(int descriptor, const char *path, char out[SHAI_REQUEST_PATH_MAX]);

/*
 * What is left of access(2) for a file that could be opened with the call's flags:
 * whether anybody may execute it, where mode asks. Returns 0, or -1 with errno.
 */
int shai_access_descriptor(int descriptor, uint32_t mode);

#endif
