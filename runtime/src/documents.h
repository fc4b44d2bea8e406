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
 * From now on the directories of this session are beneath the view. NULL: of none. The
 * session stays in place until then.
 */
void shai_directories_of(const struct shai_session *session);

/*
 * Returns the descriptor beneath which *rest is, a name beneath number: for a name beneath
 * the view, the session's directory of its class, and *rest then follows the class.
 */
int shai_directory_of(int number, const char **rest);

/*
 * Does the work of shai_open after its checks: the session is bound, count at most
 * SHAI_BATCH_MAX.
 */
ssize_t shai_documents_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max);

#endif
