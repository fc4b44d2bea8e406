/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What tasks write into the channels of sessions. Only numbers of documents that the
 * session may open reach its worker: numbers could spell out a text.
 */
#ifndef SUPERVISOR_TRANSFERS_H
#define SUPERVISOR_TRANSFERS_H

#include "supervisor.h"

/* Reads an end of the session's slot from now on. Returns -1 if it cannot be watched. */
int transfers_watch(struct end *end, struct session *session, int descriptor);

/*
 * Drops what was sent to the slot's former session, which must not reach the next one. A
 * channel holds fewer records than are read here: a writer that goes on could as well
 * write later.
 */
void transfers_drain(struct end *end);

/*
 * Draws the nonce of a session that begins in the slot. Returns 0, or -1 with errno. The numbers
 * of its queries, which begin with it, are so far from those of the slot's session with a user
 * before that no late answer to that one is passed on in the 44 minutes after this one's login, or
 * after an answer to it that was read here.
 */
int transfers_draw_nonce(struct slot *slot, uint8_t nonce[SHAI_NONCE_SIZE]);

/* A session has got its user: the numbers of its queries begin with its nonce. */
void transfers_begin(struct session *session);

/*
 * Takes the monitor's answer to the question about the session's transfer, which is then
 * passed on with the numbers that are permitted. Returns false if there is no such question.
 */
bool transfers_answered(struct supervisor *s, struct session *session, struct bytes answer);

/*
 * A record that the gate of the session's worker has passed on, because it cannot decide on it.
 * It answers the query that the worker waits for.
 */
void transfers_judge(struct supervisor *s, struct session *session, struct bytes record);

/*
 * The worker of a slot, which has a grant, reads the channels of the modes shai and audit by
 * itself in the session that begins; or they are read here again.
 */
void transfers_leave(struct supervisor *s, struct slot *slot);
void transfers_take_back(struct slot *slot);

/*
 * Reads the channels whose workers let records lie, with or without a session: the other end
 * would have to wait. Returns when to call it again at the latest (see loop_now).
 */
int64_t transfers_tend(struct supervisor *s);

/* The monitor has answered the session's question: its channels are read again. */
void transfers_resume(struct session *session);

#endif
