/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Without the module: the stub forks a process for every session, from the state in
 * which it was forked itself. What it learns of a session it has to wipe out, so it
 * keeps it here and nowhere else.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/procdesc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "packet.h"
#include "stub_requests.h"
#include "stub_session.h"
#include "stub_transports.h"
#include "trap.h"

#define STACK_OF_REQUEST 32768 /* more than handling a request takes */

static struct stub_record request, answer, second;

/* What a session's process begins with, beside what the zygote left it. */
static void
become_session(struct stub *stub, int mailbox, const sigset_t *signals)
{
	static const struct rlimit none = {0, 0};

	if (dup2(mailbox, SHAI_FD_MONITOR) < 0)
		stub_give_up("session without a mailbox");
	(void)close(mailbox);
	(void)close(stub->requests);
	/* What it forked would outlive it. The superuser is not held by this. */
	(void)setrlimit(RLIMIT_NPROC, &none);
	shai_trap_ask(SHAI_TRAP_ASKS_STUB);
	(void)sigprocmask(SIG_SETMASK, signals, NULL);
}

/* Sends the answers where the question said; false when the session is gone. */
static bool
answer_request(int mailbox)
{
	int to = request.descriptor_count > 0 ? request.descriptor[0] : mailbox;
	bool sent = stub_send(to, &answer) == 0;

	if (second.length != 0)
		sent = stub_send(to, &second) == 0 && sent;
	return sent;
}

/*
 * Serves a session until it is over or its process has ended. The mailbox becomes
 * -1 where it had to be closed.
 */
static void
serve(struct stub *stub, int *mailbox, int process)
{
	struct pollfd wanted[3] = {{*mailbox, POLLIN, 0}, {process, POLLIN, 0}, {-1, POLLIN, 0}};
	enum stub_outcome outcome;

	for (;;) {
		wanted[2].fd = stub->reply;
		stub_wait(wanted, 3);
		if ((wanted[0].revents & POLLIN) == 0 || stub_receive(*mailbox, &request) != 1)
			return;
		outcome = stub_handle(stub, &request, &answer, &second);
		if (outcome == STUB_OVER || (outcome == STUB_ANSWER && !answer_request(*mailbox)))
			return;
		stub_discard(&request);
		if (outcome == STUB_BROKEN) {
			/* It may still tell its user. */
			(void)close(*mailbox);
			wanted[0].fd = *mailbox = -1;
		}
	}
}

/* Kills a session's process and waits until it is gone. */
static void
end_process(int process)
{
	struct pollfd wanted = {process, POLLIN, 0};

	(void)pdkill(process, SIGKILL);
	stub_wait(&wanted, 1);
	(void)close(process);
}

/* What was learnt of a session: in the records, and below on the stack. */
__attribute__((noinline)) static void
wipe(void)
{
	uint8_t stack[STACK_OF_REQUEST];

	explicit_bzero(stack, sizeof(stack));
	explicit_bzero(&request, sizeof(request));
	explicit_bzero(&answer, sizeof(answer));
	explicit_bzero(&second, sizeof(second));
}

void
stub_run_processes(struct stub *stub)
{
	sigset_t signals;
	int ends[2], process;
	pid_t child;

	stub_block_signals(&signals);
	for (;;) {
		if (stub_make_mailbox(ends) != 0)
			stub_give_up("mailbox");
		child = pdfork(&process, 0);
		if (child < 0)
			stub_give_up("process for a session");
		if (child == 0) {
			(void)close(ends[0]);
			become_session(stub, ends[1], &signals);
			return;
		}
		(void)close(ends[1]);
		/*
		 * A stub that is killed closes in the order of numbers: first its session's
		 * process, which ends that, then what it would hear of its end.
		 */
		ends[0] = stub_aside(ends[0], process);
		if (ends[0] < 0)
			stub_give_up("mailbox");
		stub->last = ends[0];
		serve(stub, &ends[0], process);
		end_process(process);
		/* Only now: it must not go on with a refusal for what it asked last. */
		stub_discard(&request);
		shai_packet_close(&ends[0], 1);
		wipe();
		/* A program that ends before it has a user would do so again. */
		if (!stub_end_session(stub))
			_exit(1);
	}
}
