/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records for the monitor. The socket never makes the supervisor wait.
 */
#ifndef SUPERVISOR_MONITOR_H
#define SUPERVISOR_MONITOR_H

#include "supervisor.h"

/* A record's header, for a record of this type. */
struct shai_control_header monitor_header(enum shai_control_type type, size_t size);

/*
 * Sends a record with at most one descriptor (-1: none), after all events that happened before.
 * Returns 0, or -1 if the monitor does not read now; the record is then not sent.
 */
int monitor_send(struct supervisor *s, const void *record, size_t size, int descriptor);

/* Sends the counts if they have changed. Returns 0, or -1 as monitor_send. */
int monitor_tell_counts(struct supervisor *s);

/*
 * Sends what is due: events, the answer to a fence, counts. Returns when this has to be called
 * again at the latest.
 */
int64_t monitor_report(struct supervisor *s);

/* What happens to a session, filled in from it. The same rules as for events_add. */
struct shai_control_event *monitor_event(enum shai_event_kind kind, const struct session *session);

#endif
