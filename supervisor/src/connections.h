/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Clients' connections: each goes to a worker that waits for one, and begins a session.
 */
#ifndef SUPERVISOR_CONNECTIONS_H
#define SUPERVISOR_CONNECTIONS_H

#include "supervisor.h"

/* Takes the listening socket over. No connection is accepted before s->running. 0, or -1 with
 * errno. */
int connections_listen(struct supervisor *s, int listening);

/*
 * Waits for connections if one could be served now, and reports what was held back about
 * peers that were refused. Returns when to call it again at the latest.
 */
int64_t connections_tend(struct supervisor *s);

#endif
