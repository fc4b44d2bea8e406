/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions: one connection of a client, in one slot, with one worker. A session begins
 * when a worker gets the connection. It is over when the worker is reaped or, if it is sealed,
 * waits in the roll-back code. Its slot is free again when nothing of it is left: the channels
 * are empty, the key-value connection is reset.
 */
#ifndef SUPERVISOR_SESSIONS_H
#define SUPERVISOR_SESSIONS_H

#include "supervisor.h"

/*
 * Ends sessions whose time is over, and binds those that waited. Returns when to call it
 * again at the latest.
 */
int64_t sessions_tend(struct supervisor *s);

/*
 * Ends a session: kills its worker. reason is for the monitor, "" if the worker itself
 * has ended it. Does nothing for a session that is ending already.
 */
void session_end(struct supervisor *s, struct session *session, const char *reason);

/* The same, if another event or the monitor itself says why. */
void session_end_quietly(struct supervisor *s, struct session *session, const char *reason);

/*
 * The table of regions has changed: ends the sessions without a user whose address is in
 * another region now. The monitor ends the others, if policies say so.
 */
void sessions_follow_regions(struct supervisor *s);

/*
 * A session is over: its worker is about to be reaped, or (SHAI_EVENT_ROLLED_BACK in flags)
 * executes nothing before it is rolled back. how says how it ended, if nobody else has.
 */
void session_over(struct supervisor *s, struct session *session, const char *how, uint32_t flags);

/* The live session with this number, or NULL. */
struct session *session_find(struct supervisor *s, uint64_t id);

/* Changes the state of a session of a supervisor that has its settings. */
void session_become(struct session *session, enum session_state state);

/* Lets no fence be answered before the worker of a session that is ending is gone. */
void session_await(struct session *session);

/*
 * How many of the wanted descriptors this process may have open, beside others and those that
 * sessions need. At least 1 if any is wanted. The supervisor has its settings.
 */
size_t sessions_spare_files(const struct supervisor *s, size_t others, size_t wanted);

/* Whether the worker of a session may still say something. */
bool session_lives(const struct session *session);

/* Sends a record to a session's worker. A worker that does not read ends its session. 0 or -1. */
int session_send(struct supervisor *s, struct session *session, const void *record, size_t size,
    const struct descriptors *with);

/* A header of a record for a worker. */
struct shai_header session_header(enum shai_type type, size_t size, uint64_t sequence);

#endif
