/* SPDX-License-Identifier: BSD-2-Clause */
#include "tuples.h"

#include <stdio.h>
#include <unistd.h>

/*
 * In mode baseline the worker has a connection of its own, which it keeps over
 * sessions and makes again after a failure.
 */
static bool
ensure_keyvalue(struct worker *worker)
{
	struct keyvalue *keyvalue = &worker->keyvalue;

	if (keyvalue->context != NULL)
		return true;
	if (worker->session.keyvalue >= 0)
		return keyvalue_adopt(keyvalue, worker->session.keyvalue);
	if (shai_mode() == SHAI_MODE_BASELINE && worker->settings->keyvalue_socket != NULL)
		return keyvalue_connect(keyvalue, worker->settings->keyvalue_socket);
	keyvalue->reason = "this session has no key-value connection";
	return false;
}

bool
tuples_begin(struct worker *worker, struct keyvalue_user *user)
{
	*user = (struct keyvalue_user){.name = worker->principal,
	    .region = worker->session.region,
	    .timeout_milliseconds = worker->settings->answer_timeout};
	return ensure_keyvalue(worker);
}

int
tuples_failed(struct worker *worker, const char *what, char *reason, size_t reason_size)
{
	/* The monitor's connection is never made again: a part of a reply may be lost. */
	if (worker->session.keyvalue >= 0)
		close(worker->session.keyvalue);
	worker->session.keyvalue = -1;
	snprintf(reason, reason_size, "%s: %s", what, worker->keyvalue.reason);
	return 503;
}
