/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_DOCUMENTS_H
#define SHAI_DOCUMENTS_H

#include "shai.h"

/* Makes a session unusable and returns -1. Keeps errno and the reason. */
static inline int
shai_session_break(struct shai_session *session)
{
	session->state = SHAI_SESSION_BROKEN;
	return -1;
}

/*
 * Does the work of shai_open after its checks: the session is bound, count at most
 * SHAI_BATCH_MAX.
 */
ssize_t shai_documents_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max);

#endif
