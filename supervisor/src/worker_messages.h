/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What workers say, each on the socket of its session.
 */
#ifndef SUPERVISOR_WORKER_MESSAGES_H
#define SUPERVISOR_WORKER_MESSAGES_H

#include "supervisor.h"

/* Watches the supervisor's end of a worker's socket, and takes it over. 0, or -1 with errno. */
int worker_messages_watch(struct supervisor *s, struct session *session, int socket);

#endif
