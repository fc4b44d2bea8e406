/* SPDX-License-Identifier: BSD-2-Clause */
#include "zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"
#include "slots.h"

/* With a handler, SIGTERM interrupts shai_fork_worker instead of killing the zygote. */
static void
interrupt(int signal_number)
{
	(void)signal_number;
}

/*
 * Forks whenever the supervisor wants a worker. It waits for no worker: how one ends says
 * what its user did, and only the supervisor may learn that.
 */
static int
fork_on_demand(struct worker *pristine)
{
	struct sigaction interrupting = {.sa_handler = interrupt};

	sigaction(SIGTERM, &interrupting, NULL);
	for (;;) {
		pid_t worker = shai_fork_worker(0);

		if (worker == 0) {
			signal(SIGTERM, SIG_DFL);
			return worker_run(pristine);
		}
		if (worker > 0)
			continue;
		if (errno == EINTR)
			return EXIT_SUCCESS;
		fprintf(stderr, "syse-frontend: %s\n", shai_reason());
		/* If only memory or processes are short, the supervisor waits before the next. */
		if (errno != EAGAIN && errno != ENOMEM)
			return EXIT_FAILURE;
	}
}

int
zygote_run(struct worker *pristine)
{
	static const char ready[] = "ready\n";

	signal(SIGPIPE, SIG_IGN); /* write(2) returns an error if a client or an engine is gone */
	if (write(STDOUT_FILENO, ready, sizeof ready - 1) < 0)
		fprintf(stderr, "syse-frontend: say that it is ready: %s\n", strerror(errno));
	return has_supervisor() ? fork_on_demand(pristine) : slots_run(pristine);
}
