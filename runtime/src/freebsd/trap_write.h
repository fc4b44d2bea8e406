/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_TRAP_WRITE_H
#define SHAI_TRAP_WRITE_H

#include <stdint.h>
#include <sys/types.h>

#include "refused_call.h"

/*
 * Finishes a write to a checked number: asks the sandbox for a descriptor to write
 * to. Returns the number of bytes written, or -1 with errno. Async-signal-safe.
 */
ssize_t shai_trap_write(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS]);

/* The same for a session, whose stub writes for it. */
ssize_t shai_trap_write_by_stub(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS]);

#endif
