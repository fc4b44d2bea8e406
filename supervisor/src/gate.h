/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a sealed worker reads from its session's channel by itself: the gate (gate_code.S) lets
 * through what the worker's grant covers. The grant is in a file in memory of the worker's own,
 * which it maps; only this process can write to it.
 */
#ifndef SUPERVISOR_GATE_H
#define SUPERVISOR_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "shai_gate.h"

/*
 * Makes a grant of nothing. Returns the descriptor of its file, which the caller closes, or -1
 * with errno. The caller calls gate_free with *grant.
 */
int gate_new(struct shai_grant **grant);
void gate_free(struct shai_grant *grant); /* NULL: nothing happens */

/*
 * Lets the session that begins get the numbers of documents of these classes (ascending, at most
 * SHAI_CLASSES_MAX), or, with SHAI_GRANT_UNCHECKED in flags, any. conduits is the length of the
 * class table. It may be called again for a live session whose set has grown: the gate is not
 * shut meanwhile, and looks up nothing but classes of the larger set.
 */
void gate_open(struct shai_grant *grant, uint32_t flags, size_t conduits, const uint32_t *classes,
    size_t count);

/* The session ends. The next one finds nothing of its classes. NULL: nothing happens. */
void gate_shut(struct shai_grant *grant);

#endif
