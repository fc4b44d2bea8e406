/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The key-value store as the worker of a session uses it.
 */
#ifndef SYSE_TUPLES_H
#define SYSE_TUPLES_H

#include "worker.h"

/*
 * Makes worker->keyvalue usable, and says whose tuples the session uses. Returns whether this
 * worked; if not, call tuples_failed.
 */
bool tuples_begin(struct worker *worker, struct keyvalue_user *user);

/*
 * Ends the use of a connection that has failed, and writes the reason: what was to be done, and the
 * cause. Returns the HTTP status, 503.
 */
int tuples_failed(struct worker *worker, const char *what, char *reason, size_t reason_size);

#endif
