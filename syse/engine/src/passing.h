/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Channels that carry open descriptors and nothing else. One implementation per operating
 * system: passing_<system>.c.
 */
#ifndef SYSE_ENGINE_PASSING_H
#define SYSE_ENGINE_PASSING_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a channel carries descriptors. The others carry records with numbers. */
bool passing_is(int channel);

/*
 * Passes 1..SHAI_BATCH_MAX descriptors of regular files, which stay open here. Returns 0,
 * or -1 with errno.
 */
int passing_send(int channel, const int *descriptors, size_t count);

#endif
