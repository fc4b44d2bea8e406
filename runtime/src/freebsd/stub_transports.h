/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The two ways for a stub and its sessions to be apart. Each function is the stub
 * for the rest of the process's life: it returns only in a session's half, in which
 * nothing of the stub's is left, once for every session.
 */
#ifndef SHAI_STUB_TRANSPORTS_H
#define SHAI_STUB_TRANSPORTS_H

#include <stdbool.h>

#include "stub.h"

/* Contexts of one process, by shai.ko. */
bool stub_has_contexts(void);
void stub_run_contexts(struct stub *stub);

/* A process for every session. */
void stub_run_processes(struct stub *stub);

#endif
