/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One worker: a process that serves one user's session, from accepting the
 * connection until it ends.
 */
#ifndef SYSE_WORKER_H
#define SYSE_WORKER_H

#include <stdint.h>

#include "assets.h"
#include "keys.h"
#include "keyvalue.h"
#include "settings.h"
#include "shai.h"

struct worker {
	const struct settings *settings;
	const struct assets *assets;
	const struct keys *keys; /* empty unless the mode is baseline */
	/* Of the current session: */
	struct shai_session session;
	struct keyvalue keyvalue;
	char principal[SHAI_NAME_MAX]; /* empty until authenticated */
	unsigned failed_logins;
	uint32_t next_query; /* number of the next query */
};

/* Exit statuses of a worker process. */
#define WORKER_SERVED 0
#define WORKER_FAILED 1 /* could not accept; the reason is on standard error */

/*
 * Accepts one session and serves it. In mode baseline, unless settings->single_session is
 * set, serves sessions one after the other without end. The zygote's child calls this and exits
 * with the result.
 */
int worker_run(struct worker *worker);

/* Serves an accepted session until it ends. The caller resets it. */
void worker_serve(struct worker *worker);

#endif
