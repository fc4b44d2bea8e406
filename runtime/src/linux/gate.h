/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How a sealed worker reads its channel: by the gate (shai_gate.h), which lets nothing through
 * but numbers of documents that the session may open.
 */
#ifndef SHAI_LINUX_GATE_H
#define SHAI_LINUX_GATE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Gets this worker's grant from its supervisor, and maps what the gate needs. Returns 0, or -1:
 * then the worker cannot be sealed. Called before it is, with the roll-back code in its place.
 */
int shai_gate_prepare(void);

/*
 * Receives a transfer from a channel, which must answer the query, without waiting. Returns its
 * length, 0 if the sender is gone, or -1 with errno: EAGAIN if there is none. One that the
 * supervisor decides on comes on SHAI_FD_MONITOR instead. The worker must be sealed.
 */
ssize_t shai_gate_receive(int channel, uint32_t query, void *buffer, size_t size);

#endif
