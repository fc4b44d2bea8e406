/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a session could leave in its process for others, by the process' signals and counts.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signal.h>
#include <sys/sysctl.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"
#include "session.h"

#define USER 1001

/* The kernel sends SIGXFSZ to the process, not to the thread. */
static void
signal_for_the_size(void)
{
	const struct rlimit limit = {4096, 4096};
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int file = open_file("/tmp/large", O_RDWR | O_CREAT, 0600);

	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/large"), 0);
	REQUIRE_EQUAL(CALL2(SYS_setrlimit, RLIMIT_FSIZE, &limit), 0);
	if (create(&spec, &event)) {
		block(SIGXFSZ);
		REQUIRE_EQUAL(CALL4(SYS_pwrite, file, "x", 1, 8192), -EFBIG);
		end_session();
	}
	handle(SIGXFSZ);
	run_session(event.descriptor);
	REQUIRE_EQUAL(handled, 0);
}

/* A session that ignores SIGCHLD takes the stub's children from it. */
static void
children_of_the_stub(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	struct sigaction action;
	int go[2];
	long child;
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, go, 0), 0);
	child = CALL0(SYS_fork);
	if (child == 0) {
		(void)CALL3(SYS_read, go[0], &byte, 1);
		leave(5);
	}
	if (create(&spec, &event)) {
		memset(&action, 0, sizeof(action));
		action.sa_handler = SIG_IGN;
		(void)CALL3(SYS_sigaction, SIGCHLD, &action, NULL);
		(void)CALL3(SYS_write, go[1], "x", 1);
		pause_for(500);
		end_session();
	}
	run_session(event.descriptor);
	REQUIRE_EQUAL(wait_for(child), 5);
}

/* A file that sends signals, which ioctl(2) with FIOASYNC makes of it, too. */
static void
signals_of_files(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int ends[2];

	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL3(SYS_fcntl, ends[0], F_SETFL, O_ASYNC), -EPERM);
		REQUIRE_EQUAL(CALL3(SYS_fcntl, ends[0], F_SETFL, O_NONBLOCK), 0);
		end_session();
	}
	run_session(event.descriptor);
}

/* "Neither end learns of them": but anybody can read how many there were. */
static void
withheld_is_not_told(void)
{
	struct shai_conduit one, two;
	int ends[2], sent[2], received;

	sent[0] = open_conduit("/tmp/1", O_RDONLY, &one);
	sent[1] = open_conduit("/tmp/2", O_RDONLY, &two);
	for (int i = 0; i < 2; i++)
		REQUIRE_EQUAL(CALL2(SYS_fchmod, sent[i], 0644), 0);
	REQUIRE_EQUAL(CALL1(SYS_setuid, USER), 0);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, &one, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], sent, 2), 0);
	REQUIRE_EQUAL(shai_receive(ends[0], &received, 1), 1);
	REQUIRE(read_variable("shai.count.withheld") < 0);
}

const struct check trace_checks[] = {
    {"a signal for the size of a file stays with its context", signal_for_the_size, 0},
    {"a session does not take the stub's children", children_of_the_stub, 0},
    {"files do not send signals to the process", signals_of_files, 0},
    {"how many were withheld is not told", withheld_is_not_told, 0},
    {NULL, NULL, 0},
};
