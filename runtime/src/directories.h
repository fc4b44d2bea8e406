/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_DIRECTORIES_H
#define SHAI_DIRECTORIES_H

#include "exchange.h"
#include "shai.h"

/*
 * Takes a message's descriptors, from first on, as the directories of the session's first
 * count classes. Those that the session held before are closed.
 */
void shai_directories_take(
    struct shai_session *session, struct shai_message *message, size_t first, uint32_t count);

/* Returns the session's directory of a class, or -1 if it holds none. */
int shai_directory_of_class(const struct shai_session *session, uint32_t class);

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

#endif
