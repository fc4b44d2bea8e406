/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the monitor records: a ring of events, sent in order and in batches.
 */
#ifndef SUPERVISOR_EVENTS_H
#define SUPERVISOR_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shai_supervision.h"

/* Makes room for the events of so many sessions. Called once, before the first event. */
void events_begin(uint32_t sessions);

/*
 * Adds an event, with its kind and time filled in, for the caller to complete before the next call
 * of this module. Never NULL: the room that is kept for live sessions suffices for what they can
 * still cause, see events_room.
 */
struct shai_control_event *events_add(enum shai_event_kind kind);

/* Whether there is room for the events of one session more. If not, none may begin or be bound. */
bool events_room(void);

/*
 * Sends all events. Returns 0 when none are left, or -1 with errno (EAGAIN: the monitor
 * does not read; they stay).
 */
int events_flush(int control);

/* When the next events have to be sent (see loop_now): INT64_MAX if there are none. */
int64_t events_deadline(void);

#endif
