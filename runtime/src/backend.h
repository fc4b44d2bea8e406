/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the library needs of an operating system; one implementation per system.
 * Functions return -1 with errno on failure.
 */
#ifndef SHAI_BACKEND_H
#define SHAI_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Maps the gate. Once, from the library's constructor: later the filter's
 * assumption, that the page holds nothing but the gate, could be attacked.
 */
int shai_backend_map_gate(void);

/* read(2) through the gate; ENOSYS when there is none. */
ssize_t shai_backend_gate_read(int descriptor, void *buffer, size_t size);

/*
 * Opens a file for reading beneath a directory capability, close-on-exec, not
 * following a final symbolic link. Never answered by the monitor.
 */
int shai_backend_open_beneath(int directory, const char *name);

/* Restricts this thread for good to a prepared ruleset; the descriptor stays open. */
int shai_backend_restrict(int ruleset);

/* Fills the buffer with unpredictable bytes. */
int shai_backend_random(void *buffer, size_t size);

#endif
