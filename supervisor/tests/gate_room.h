/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the gate needs, in this process: its page, the buffer, a grant, a class table, a channel
 * and a supervisor's socket, at their addresses and numbers.
 */
#ifndef SUPERVISOR_GATE_ROOM_H
#define SUPERVISOR_GATE_ROOM_H

#include <stdint.h>

#include "shai_gate.h"

#define GATE_ROOM_CONDUITS 30000u /* of the class table */
#define GATE_ROOM_UNCLASSED 998u  /* has no class */

struct gate_room {
	struct shai_grant *grant; /* of nothing */
	uint32_t *classes;        /* even conduits have the session's class, odd ones another */
	int channel;              /* where the sender writes */
	int supervisor;           /* what is sent to the supervisor */
};

void gate_room_open(struct gate_room *room, uint32_t class);
void gate_room_close(struct gate_room *room);

#endif
