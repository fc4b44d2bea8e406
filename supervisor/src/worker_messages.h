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
 * Ends the session of a worker that has ended, or has closed its end. Its end may be seen
 * before its last messages, so it reads whether the worker had reset the session. What else
 * the worker had asked for is left.
 */
void worker_messages_finish(struct supervisor *s, struct session *session);

/* Only reads what is left: whether the worker of a session has reset it. */
void worker_messages_read(struct supervisor *s, struct session *session);

#endif
