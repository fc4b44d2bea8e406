/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A redis-server of a test's own, configured as the monitor does it.
 */
#ifndef SUPERVISOR_REDIS_SERVER_H
#define SUPERVISOR_REDIS_SERVER_H

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "shai_supervision.h"

struct redis_server {
	pid_t pid;
	char directory[64];
	struct shai_control_store store;
	redisContext *administrator;
};

/* Starts it; the test fails if it does not answer. */
void redis_server_start(struct redis_server *server);

/* Says something as the administrator; the test fails if it is refused. */
void redis_server_do(struct redis_server *server, const char *format, ...);

/* Returns the string of a key, "" if there is none, as the administrator. The caller frees it. */
char *redis_server_get(struct redis_server *server, const char *key);

void redis_server_stop(struct redis_server *server);

#endif
