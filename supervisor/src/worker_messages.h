/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What workers say, each on the socket of its session.
 */
#ifndef SUPERVISOR_WORKER_MESSAGES_H
#define SUPERVISOR_WORKER_MESSAGES_H

#include "supervisor.h"

/* Watches the supervisor's end of a worker's socket, and takes it over. 0, or -1 with errno. */
int worker_messages_watch(struct supervisor *s, struct session *session, int socket);

/*
 * Reads whether a worker that has ended had reset its session: its end may be seen before
 * its last message. What else it had asked for is left.
 */
void worker_messages_finish(struct supervisor *s, struct session *session);

#endif
