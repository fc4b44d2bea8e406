/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures about sessions that live at the same time. A worker serves one session: its
 * process has a stub, the snapshot and the session. Beside it is what it would cost to have
 * the sessions of many users in one process, a context each, which one stub waits for.
 */
#include <sys/fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"
#include "figures.h"

#define SESSIONS 32
#define ROUNDS 500
#define PAGE 4096
#define ZYGOTE_PAGES 128 /* that the zygote has written */
#define SESSION_PAGES 24 /* that a session writes */

static char *memory;

static void
write_pages(size_t count)
{
	for (size_t i = 0; i < count; i++)
		memory[i * PAGE]++;
}

/* Is a session: works, then waits for its monitor, again and again. */
static _Noreturn void
be_session(void)
{
	for (;;) {
		write_pages(SESSION_PAGES);
		(void)open_file("/", O_RDONLY, 0);
	}
}

/* Makes a snapshot, which sessions are copies of. Does not return in a session. */
static int
make_snapshot(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event))
		be_session();
	return event.descriptor;
}

/* Makes a session, and lets it run until it waits. */
static int
make_session(int snapshot)
{
	const struct lwc_spec spec = {.version = LWC_VERSION, .source = snapshot};
	struct lwc_event event;
	int session;

	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	session = event.descriptor;
	REQUIRE_EQUAL(lwc_switch(session, 0, 0, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
	return session;
}

/* ------------------------------------------------------------------- memory */

static int64_t
free_pages(void)
{
	return read_variable("vm.stats.vm.v_free_count");
}

/* Starts a process that makes sessions, says so, and lives until the pipe ends. */
static long
start_worker(int sessions, int said, const int until[2])
{
	long child = CALL0(SYS_fork);
	char byte;

	if (child != 0)
		return child;
	(void)CALL1(SYS_close, until[1]);
	for (int snapshot = make_snapshot(), i = 0; i < sessions; i++)
		(void)make_session(snapshot);
	(void)CALL3(SYS_write, said, "x", 1);
	(void)CALL3(SYS_read, until[0], &byte, 1);
	leave(0);
}

/* The pages that sessions take, in so many processes. */
static uint64_t
pages_of(int processes, int sessions)
{
	int said[2], until[2];
	long child[SESSIONS];
	int64_t before = free_pages();
	char byte;

	(void)CALL2(SYS_pipe2, said, 0);
	(void)CALL2(SYS_pipe2, until, 0);
	for (int i = 0; i < processes; i++) {
		child[i] = start_worker(sessions, said[1], until);
		REQUIRE_EQUAL(CALL3(SYS_read, said[0], &byte, 1), 1);
	}
	before -= free_pages();
	(void)CALL1(SYS_close, until[1]);
	for (int i = 0; i < processes; i++)
		(void)wait_for(child[i]);
	return before > 0 ? (uint64_t)before : 1;
}

static uint64_t
pages_of_processes(void)
{
	return pages_of(SESSIONS, 1);
}

static uint64_t
pages_of_contexts(void)
{
	return pages_of(1, SESSIONS);
}

/* --------------------------------------------------------------------- time */

/* One more session beside others: a worker for it, as it is. */
static uint64_t
time_workers(void)
{
	uint64_t begun = nanoseconds();

	for (int i = 0; i < ROUNDS; i++) {
		long child = CALL0(SYS_fork);

		if (child == 0) {
			(void)make_session(make_snapshot());
			leave(0);
		}
		(void)wait_for(child);
	}
	return (nanoseconds() - begun) / ROUNDS;
}

/* One more session beside others: a context for it. The next session in a worker is the same. */
static uint64_t
time_sessions(void)
{
	int snapshot = make_snapshot();
	uint64_t begun = nanoseconds();

	for (int i = 0; i < ROUNDS; i++)
		(void)CALL1(SYS_close, make_session(snapshot));
	return (nanoseconds() - begun) / ROUNDS;
}

/* A call of a session that the stub makes for it, as it would have to make those that block. */
static uint64_t
time_redirected_reads(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t begun;
	int zeros = open_file("/dev/zero", O_RDONLY, 0);

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	spec.redirected[SYS_read / 64] |= UINT64_C(1) << SYS_read % 64;
	if (create(&spec, &event))
		for (;;)
			(void)CALL3(SYS_read, zeros, memory, 1);
	(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++) {
		REQUIRE_EQUAL(event.call, SYS_read);
		REQUIRE_EQUAL(lwc_syscall(LWC_CALLER, LWC_USE_MEMORY | LWC_USE_FILES, SYS_read,
				  (long)event.arguments[0], (long)event.arguments[1], 1),
		    1);
		(void)lwc_answer(LWC_CALLER, 1, 0, &event);
	}
	return (nanoseconds() - begun) / ROUNDS;
}

/* The same call without a stub. */
static uint64_t
time_reads(void)
{
	int zeros = open_file("/dev/zero", O_RDONLY, 0);
	uint64_t begun = nanoseconds();

	for (int i = 0; i < ROUNDS; i++)
		(void)CALL3(SYS_read, zeros, memory, 1);
	return (nanoseconds() - begun) / ROUNDS;
}

void
print_session_figures(void)
{
	memory = map_pages(ZYGOTE_PAGES);
	write_pages(ZYGOTE_PAGES);
	print_ratio("memory of 32 sessions in 32 workers / in one process",
	    measure(pages_of_processes), measure(pages_of_contexts));
	print_ratio("time of a worker with its session / of a session in a context",
	    measure(time_workers), measure(time_sessions));
	print_ratio("read(2) by the stub for a session / by the session",
	    measure(time_redirected_reads), measure(time_reads));
}
