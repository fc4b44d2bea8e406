/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Without the module: the stub forks a process for every session, from the state in
 * which the stub itself was forked. It must wipe all data of a session afterwards, so
 * it keeps such data only in this file.
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

/* Turns a forked process into a session, with only what the zygote left it. */
static void
become_session(struct stub *stub, int mailbox, const sigset_t *signals)
{
	static const struct rlimit none = {0, 0};

	if (dup2(mailbox, SHAI_FD_MONITOR) < 0)
		stub_give_up("session without a mailbox");
	(void)close(mailbox);
	(void)close(stub->requests);
	if (stub_reopen_files(&stub->files) != 0)
		stub_give_up("files of a session");
	/*
	 * A child would outlive the session. The limit does not hold for the
	 * superuser.
	 */
	(void)setrlimit(RLIMIT_NPROC, &none);
	shai_trap_ask(SHAI_TRAP_ASKS_STUB);
	(void)sigprocmask(SIG_SETMASK, signals, NULL);
}

/*
 * Sends the answers to where the request came from. Returns false if the session is
 * gone.
 */
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
 * Serves a session until it is over or its process has ended. Sets *mailbox to -1 if
 * the mailbox had to be closed.
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
			/* The session may still send its user an error. */
			(void)close(*mailbox);
			wanted[0].fd = *mailbox = -1;
		}
	}
}

/* Kills a session's process and waits until it has ended. */
static void
end_process(int process)
{
	struct pollfd wanted = {process, POLLIN, 0};

	(void)pdkill(process, SIGKILL);
	stub_wait(&wanted, 1);
	(void)close(process);
}

/* Wipes a session's data: from the records, and from the stack below this frame. */
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
		 * When a stub is killed, the kernel closes its descriptors in
		 * ascending order: first that of the session's process, which ends
		 * the process, then the mailbox, by which the process could notice
		 * the stub's end.
		 */
		ends[0] = stub_aside(ends[0], process);
		if (ends[0] < 0)
			stub_give_up("mailbox");
		stub->last = ends[0];
		serve(stub, &ends[0], process);
		end_process(process);
		/*
		 * Not before the end of the process: it must not continue after a
		 * refusal of its last request.
		 */
		stub_discard(&request);
		shai_packet_close(&ends[0], 1);
		wipe();
		/* A program that ends before it has a user would end again and again. */
		if (!stub_end_session(stub))
			_exit(1);
	}
}
