/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The two ways to separate a stub from its sessions. Each function is the stub for
 * the rest of the process's life: it returns only in a session, once for each,
 * without anything of the stub.
 */
#ifndef SHAI_STUB_TRANSPORTS_H
#define SHAI_STUB_TRANSPORTS_H

#include <stdbool.h>

#include "stub.h"

/* With contexts of one process, by shai.ko. */
bool stub_has_contexts(void);
void stub_run_contexts(struct stub *stub);

/* With a process for every session. */
void stub_run_processes(struct stub *stub);

#endif
