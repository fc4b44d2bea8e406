/* SPDX-License-Identifier: BSD-2-Clause */
#include "stub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"

int
stub_begin(struct stub *stub)
{
	*stub =
	    (struct stub){.reply = -1, .monitor = -1, .channel = -1, .connection = -1, .view = -1};
	if (shai_ask_plainly(SHAI_REQUEST_WORKER) != 0 || stub_find_files(&stub->files) != 0)
		return -1;
	stub->requests = fcntl(SHAI_FD_REQUESTS, F_DUPFD_CLOEXEC, SHAI_FD_RESERVED_END);
	if (stub->requests < 0)
		return -1;
	stub->last = stub->requests;
	return dup2(SHAI_FD_DELIVERY, SHAI_FD_REQUESTS) < 0 ? -1 : 0;
}

void
stub_wait(struct pollfd *wanted, nfds_t count)
{
	sigset_t none;

	(void)sigemptyset(&none);
	while (ppoll(wanted, count, NULL, &none) < 0 && errno == EINTR)
		continue;
}

void
stub_block_signals(sigset_t *old)
{
	sigset_t all;

	(void)sigfillset(&all);
	/*
	 * Do not block the signals of the stub's own faults: they would be fatal
	 * anyway.
	 */
	(void)sigdelset(&all, SIGTRAP);
	(void)sigprocmask(SIG_SETMASK, &all, old);
}

void
stub_give_up(const char *what)
{
	(void)fprintf(stderr, "libshai: %s: %s; the worker ends\n", what, strerror(errno));
	_exit(SHAI_EXIT_STUB);
}
