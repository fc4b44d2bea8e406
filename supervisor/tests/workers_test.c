/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which ends of workers make the next fork wait: of those that fail at their start.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sessions.h"
#include "slots.h"
#include "testing.h"
#include "worker_messages.h"
#include "workers.h"

#define LOGINS_MAX 3 /* in one session */

static struct supervisor s;
static int theirs; /* the worker's end of its session's socket */

/* A worker, which does nothing. */
static void
fork_one(enum worker_state state)
{
	struct worker *worker = &s.worker[0];
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	memset(&s, 0, sizeof(s));
	s.settings.slots = 1;
	s.mode = SHAI_MODE_SHAI;
	TAILQ_INIT(&s.unsettled);
	slots_begin(&s);
	*worker = (struct worker){.pid = pid};
	if (state != WORKER_NONE)
		worker_become(&s, worker, state);
}

/* A worker and its session, which is its first. */
static void
begin(void)
{
	struct worker *worker = &s.worker[0];
	struct session *session = &s.session[0];
	int ends[2];

	fork_one(WORKER_IDLE);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	theirs = ends[1];
	worker->session = session;
	worker->sessions = 1;
	worker_become(&s, worker, WORKER_SERVING);
	session->worker = worker;
	session_become(session, SESSION_UNBOUND);
	assert_int_equal(worker_messages_watch(&s, session, ends[0]), 0);
}

static void
say(const void *record, size_t size)
{
	assert_int_equal(packet_send(theirs, record, size, NULL), 0);
	loop_turn(0);
}

static void
dies(void)
{
	assert_int_equal(kill(s.worker[0].pid, SIGKILL), 0);
}

/* A sealed worker, when it has returned from a session. */
static void
dies_after_its_session(void)
{
	session_over(&s, &s.session[0], "", SHAI_EVENT_ROLLED_BACK);
	worker_become(&s, &s.worker[0], WORKER_RETURNING);
	dies();
}

static void
breaks_the_protocol(void)
{
	say("what is this?", 13);
}

static void
log_in(int times)
{
	const struct shai_authenticate login = {
	    .header = session_header(SHAI_AUTHENTICATE, sizeof(login), 1), .principal = "nobody"};

	for (int i = 0; i < times; i++)
		say(&login, sizeof(login));
}

static void
dies_of_a_login(void)
{
	log_in(1);
	dies();
}

static void
logs_in_too_often(void)
{
	log_in(LOGINS_MAX + 1);
}

static void
is_over(void)
{
	const struct shai_reset reset = {.header = session_header(SHAI_RESET, sizeof(reset), 1)};

	say(&reset, sizeof(reset));
}

/* As the monitor does. */
static void
is_revoked(void)
{
	session_end_quietly(&s, &s.session[0], "access was revoked");
}

static void
takes_too_long(void)
{
	session_end(&s, &s.session[0], "a session lasts at most 1 s");
}

/* Reaps the worker. Returns whether the next fork has to wait longer. */
static bool
makes_forks_wait(void)
{
	siginfo_t ended;

	assert_int_equal(waitid(P_PID, (id_t)s.worker[0].pid, &ended, WEXITED | WNOWAIT), 0);
	assert_false(workers_reap(&s));
	assert_int_equal(s.worker[0].state, WORKER_NONE);
	return s.fork_after > 0;
}

/* One that has not made a call yet is not known. */
static void
forks_wait_for_workers_that_fail_at_their_start(void **state)
{
	static const enum worker_state states[] = {WORKER_NONE, WORKER_BORN, WORKER_IDLE};
	int64_t before = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(states); i++) {
		fork_one(states[i]);
		s.back_off = before;
		dies();
		assert_true(makes_forks_wait());
		assert_true(s.back_off > before);
		before = s.back_off;
	}
}

/* Whatever a client brings its worker to, at once, and before its login. */
static void
forks_do_not_wait_for_what_clients_bring_workers_to(void **state)
{
	static void (*const ends[])(void) = {dies, breaks_the_protocol, dies_of_a_login,
	    logs_in_too_often, is_over, is_revoked, takes_too_long, dies_after_its_session};

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++) {
		begin();
		s.back_off = SECOND;
		ends[i]();
		assert_false(makes_forks_wait());
		/* The end of a session takes the pause back, however it came; later ends do not. */
		assert_int_equal(s.back_off, ends[i] == dies_after_its_session ? SECOND : 0);
		(void)close(theirs);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forks_wait_for_workers_that_fail_at_their_start),
	    cmocka_unit_test(forks_do_not_wait_for_what_clients_bring_workers_to),
	};

	if (loop_open() != 0)
		return 1;
	return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
