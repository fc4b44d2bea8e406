/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whoever waits for others can be stopped and killed. When one of these fails, it leaves
 * processes that never end, so they come last.
 */
#include <sys/linker.h>
#include <sys/procctl.h>
#include <sys/signal.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"
#include "session.h"

/* Waits for a child for so many seconds. Returns whether it has ended. */
static bool
ends_within(long child, uint64_t seconds)
{
	uint64_t end = nanoseconds() + seconds * 1000000000u;
	int status;

	while (CALL4(SYS_wait4, child, &status, WNOHANG, 0) == 0) {
		if (nanoseconds() > end)
			return false;
		pause_for(20);
	}
	return true;
}

static _Noreturn void
discard_for_ever(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	for (;;) {
		if (create(&spec, &event))
			leave(1);
		(void)CALL1(SYS_close, event.descriptor);
	}
}

/*
 * PROC_REAP_KILL holds a process and waits until its thread has stopped at the boundary of
 * a call; the thread that discards a context waits for the holder.
 */
static void
held_and_stopped(void)
{
	struct procctl_reaper_kill signal;
	long self, reaper = CALL0(SYS_fork);

	if (reaper == 0) {
		long worker;

		self = CALL0(SYS_getpid);
		memset(&signal, 0, sizeof(signal));
		REQUIRE_EQUAL(CALL4(SYS_procctl, P_PID, self, PROC_REAP_ACQUIRE, NULL), 0);
		worker = CALL0(SYS_fork);
		if (worker == 0)
			discard_for_ever();
		signal.rk_sig = SIGURG; /* nobody minds it */
		for (int i = 0; i < 1000; i++) {
			if (i % 16 == 0)
				pause_for(1);
			REQUIRE_EQUAL(CALL4(SYS_procctl, P_PID, self, PROC_REAP_KILL, &signal), 0);
		}
		signal.rk_sig = SIGKILL;
		REQUIRE_EQUAL(CALL4(SYS_procctl, P_PID, self, PROC_REAP_KILL, &signal), 0);
		REQUIRE_EQUAL(wait_for(worker), 256 + SIGKILL);
		leave(0);
	}
	REQUIRE(ends_within(reaper, 120));
}

/* Who unloads the module waits until every processor is idle once, and cannot be killed. */
static void
unload_given_up(void)
{
	static struct kld_file_stat status = {.version = sizeof(status)};
	long busy[32], unloader, module = CALL1(SYS_kldfind, "shai.ko");
	int64_t count = read_variable("kern.smp.cpus") * 2;
	bool ended;

	REQUIRE_EQUAL(CALL2(SYS_kldstat, module, &status), 0);
	REQUIRE(count > 0 && count <= 32);
	for (int64_t i = 0; i < count; i++) {
		busy[i] = CALL0(SYS_fork);
		if (busy[i] == 0)
			for (;;)
				continue;
	}
	unloader = CALL0(SYS_fork);
	if (unloader == 0) {
		(void)CALL1(SYS_kldunload, module);
		leave(0);
	}
	pause_for(3000);
	(void)CALL2(SYS_kill, unloader, SIGKILL);
	ended = ends_within(unloader, 20);
	for (int64_t i = 0; i < count; i++) {
		(void)CALL2(SYS_kill, busy[i], SIGKILL);
		(void)wait_for(busy[i]);
	}
	if (!ended)
		(void)wait_for(unloader);
	if (CALL1(SYS_kldfind, "shai.ko") < 0)
		REQUIRE(CALL1(SYS_kldload, status.pathname) > 0);
	REQUIRE(ended);
}

const struct check stop_checks[] = {
    {"a held process can be stopped", held_and_stopped, 0},
    {"an unload can be given up", unload_given_up, 0},
    {NULL, NULL, 0},
};
