/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_DOCUMENTS_H
#define SHAI_DOCUMENTS_H

#include <stdbool.h>

#include "exchange.h"
#include "shai.h"

/* Makes a session unusable and returns -1. Keeps errno and the reason. */
static inline int
shai_session_break(struct shai_session *session)
{
	session->state = SHAI_SESSION_BROKEN;
	return -1;
}

/*
 * Receives the answer to a question. What comes before it to a bound session is taken over; session
 * is NULL for a task without one. Returns 0, or -1 after shai_fail.
 */
int shai_receive_answer(struct shai_session *session, struct shai_message *message);

/*
 * Does the work of shai_open after its checks: the session is bound, count at most
 * SHAI_BATCH_MAX.
 */
ssize_t shai_documents_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max);

#endif
