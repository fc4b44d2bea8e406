/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a monitored context cannot do to its process, and what it cannot leave behind
 * for the contexts after it: the state of process and thread that no switch exchanges.
 */
#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signal.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <sys/umtx.h>

#include "check.h"
#include "session.h"

static sigset_t
current_mask(void)
{
	sigset_t set = {{0}};

	REQUIRE_EQUAL(CALL3(SYS_sigprocmask, SIG_BLOCK, NULL, &set), 0);
	return set;
}

static void
work_for(uint64_t duration)
{
	uint64_t end = nanoseconds() + duration;

	while (nanoseconds() < end)
		continue;
}

/* Counts of its program counter would be written into whatever is there later. */
static void
profile_ends(void)
{
	static uint16_t counts[65536];
	struct lwc_spec spec = session_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		(void)CALL4(SYS_profil, counts, sizeof(counts), (long)work_for & ~0xffffl, 0x10000);
		end_session();
	}
	run_session(event.descriptor);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	work_for(1000000000);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		REQUIRE_EQUAL(counts[i], 0);
}

/* The temporary mask of a call that is redirected is the session's alone. */
static void
temporary_mask(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	cap_rights_t rights;
	int ends[2];

	memset(&rights, 0, sizeof(rights));
	rights.cr_rights[0] = CAPRIGHT(0, 0) | CAP_READ;
	rights.cr_rights[1] = CAPRIGHT(1, 0);
	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	REQUIRE_EQUAL(CALL2(SYS_cap_rights_limit, ends[0], &rights), 0);
	if (create(&spec, &event)) {
		const sigset_t temporary = only(SIGUSR2);
		fd_set set;

		block(SIGHUP);
		memset(&set, 0, sizeof(set));
		set.__fds_bits[0] = 1l << ends[0];
		REQUIRE_EQUAL(
		    CALL6(SYS_pselect, ends[0] + 1, &set, 0, 0, 0, &temporary), -ENOTCAPABLE);
		REQUIRE_EQUAL(current_mask().__bits[0], only(SIGHUP).__bits[0]);
		end_session();
	}
	block(SIGUSR1);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
	REQUIRE_EQUAL(event.call, SYS_pselect);
	REQUIRE_EQUAL(current_mask().__bits[0], only(SIGUSR1).__bits[0]);
	REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 0, event.error, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
	REQUIRE_EQUAL(current_mask().__bits[0], only(SIGUSR1).__bits[0]);
}

/* A thread that wakes itself does not sleep the next time. */
static void
wakeup_for_itself(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	const struct timespec short_time = {0, 50000000};

	if (create(&spec, &event)) {
		long self = 0;

		(void)CALL1(SYS_thr_self, &self);
		(void)CALL1(SYS_thr_wake, self);
		end_session();
	}
	run_session(event.descriptor);
	REQUIRE_EQUAL(CALL1(SYS_thr_suspend, &short_time), -ETIMEDOUT);
}

/* A session that makes itself the monitor of a copy of its copy would hold itself. */
static void
no_cycle_of_monitors(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int session;

	if (create(&spec, &event)) {
		struct lwc_spec again = plain_spec();

		if (create(&again, &event))
			leave(1);
		again.source = event.descriptor;
		again.flags = LWC_MONITORED;
		again.monitor = LWC_SELF;
		(void)lwc_create(&again, &event);
		end_session();
	}
	session = event.descriptor;
	run_session(session);
	REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
}

/* A monitor ends with its last descriptor, and what only it holds ends with it. */
static void
monitor_is_closed(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int middle;

	if (create(&spec, &event)) {
		leave(1);
	}
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	spec = plain_spec();
	if (create(&spec, &event)) {
		spec = session_spec();
		if (create(&spec, &event))
			leave(1);
		end_session();
	}
	middle = event.descriptor;
	run_session(middle);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 3);
	REQUIRE_EQUAL(CALL1(SYS_close, middle), 0);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 1);
}

/* Without its monitor a context may do nothing more than with it. */
static void
monitored_by_nobody(void)
{
	static const struct lwc_descriptors share = {.first = 3, .last = 9, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int monitor, session;

	if (create(&spec, &event))
		leave(1);
	monitor = event.descriptor;
	spec = session_spec();
	spec.flags |= LWC_CAPABILITY_MODE;
	spec.monitor = monitor;
	spec.descriptors = &share;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(open_file("/dev/null", O_RDONLY, 0), -ECAPMODE);
		REQUIRE_EQUAL(CALL0(SYS_fork), -EPERM);
		end_session();
	}
	session = event.descriptor;
	REQUIRE_EQUAL(CALL1(SYS_close, monitor), 0);
	REQUIRE_EQUAL(read_variable("shai.count.contexts"), 2);
	REQUIRE_EQUAL(lwc_switch(session, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
}

#define ANSWER 4711

struct process_call {
	int number;
	long first, second, third, fourth, fifth;
};

/* Calls that change what all contexts share, or tell what others did. */
static void
calls_on_the_process(void)
{
	static long buffer[64];
	static const struct itimerval second = {{1, 0}, {1, 0}};
	static const int title[] = {CTL_KERN, KERN_PROC, KERN_PROC_ARGS, 0};
	const struct process_call made[] = {
		{SYS_setitimer, ITIMER_VIRTUAL, (long)&second, 0, 0, 0},
		{SYS_getitimer, ITIMER_VIRTUAL, (long)buffer, 0, 0, 0},
		{SYS_ktimer_create, CLOCK_REALTIME, 0, (long)buffer, 0, 0},
		{SYS_ktimer_settime, 0, 0, 0, 0, 0},
		{SYS_ktimer_gettime, 0, 0, 0, 0, 0},
		{SYS_ktimer_getoverrun, 0, 0, 0, 0, 0},
		{SYS_ktimer_delete, 0, 0, 0, 0, 0},
		{SYS_setrlimit, RLIMIT_CORE, (long)buffer, 0, 0, 0},
		{SYS_setpriority, 0, 0, 5, 0, 0},
		{SYS_rtprio, 1, 0, 0, 0, 0},
		{SYS_rtprio_thread, 1, 0, 0, 0, 0},
		{SYS_sched_setparam, 0, 0, 0, 0, 0},
		{SYS_sched_setscheduler, 0, 0, 0, 0, 0},
		{SYS_cpuset_setaffinity, 3, 2, -1, sizeof(buffer), (long)buffer},
		{SYS_cpuset_setdomain, 3, 2, -1, sizeof(buffer), (long)buffer},
		{SYS_procctl, 0, 0, 0, 0, 0},
		{SYS_thr_set_name, 0, 0, 0, 0, 0},
		{SYS_setfib, 0, 0, 0, 0, 0},
		{SYS_setsid, 0, 0, 0, 0, 0},
		{SYS_setpgid, 0, 0, 0, 0, 0},
		{SYS_ktrace, 0, 0, 0, 0, 0},
		{SYS_ptrace, 0, 0, 0, 0, 0},
		{SYS_getrusage, 0, (long)buffer, 0, 0, 0},
		{SYS_flock, 0, 0, 0, 0, 0},
		{SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, (long)buffer, 0, 0, 0},
		{SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)buffer, 0, 0, 0},
		{SYS_clock_gettime, CLOCK_VIRTUAL, (long)buffer, 0, 0, 0},
		{SYS_clock_gettime, CLOCK_PROF, (long)buffer, 0, 0, 0},
		{SYS_clock_gettime, (int)0x80000002, (long)buffer, 0, 0, 0},
		{SYS_fcntl, 1, F_SETOWN, 0, 0, 0},
		{SYS_ioctl, 1, (long)0x8004667c, (long)buffer, 0, 0}, /* FIOSETOWN */
		{SYS___sysctl, (long)title, 4, 0, 0, (long)buffer},
#if defined(__x86_64__)
		{SYS_sysarch, 1, (long)buffer, 0, 0, 0}, /* I386_SET_LDT */
#endif
		{SYS__umtx_op, 0, 28, 0, 0, 0}, /* UMTX_OP_SET_MIN_TIMEOUT of FreeBSD 15 */
	};
	const size_t count = sizeof(made) / sizeof(made[0]);
	struct lwc_spec spec = session_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		for (size_t i = 0; i < count; i++)
			REQUIRE_EQUAL(CALL6(made[i].number, made[i].first, made[i].second,
					  made[i].third, made[i].fourth, made[i].fifth, 8),
			    ANSWER);
		/* What every program needs stays its own affair. */
		REQUIRE_EQUAL(CALL2(SYS_clock_gettime, CLOCK_REALTIME, buffer), 0);
		REQUIRE(CALL2(SYS_fcntl, 1, F_GETFD) >= 0);
		REQUIRE(read_variable("kern.smp.cpus") > 0);
		end_session();
	}
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	for (size_t i = 0; i < count; i++) {
		REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
		REQUIRE_EQUAL(event.call, made[i].number);
		REQUIRE_EQUAL(event.error, EPERM);
		REQUIRE_EQUAL(lwc_answer(LWC_CALLER, ANSWER, 0, &event), 0);
	}
	REQUIRE_EQUAL(event.kind, LWC_EVENT_SWITCHED);
}

/* Nor through a copy. */
static void
calls_on_the_process_on_behalf(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		spec = plain_spec();
		if (create(&spec, &event))
			leave(1);
		REQUIRE_EQUAL(
		    lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_fcntl, 1, F_SETOWN, 0),
		    -EPERM);
		end_session();
	}
	run_session(event.descriptor);
	REQUIRE_EQUAL(
	    lwc_syscall(event.descriptor, LWC_USE_FILES, SYS_setpriority, 0, 0, 1), -EINVAL);
}

/* A signal that the session blocks and sends to its process would wait for the stub. */
static void
signals_to_itself(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		const long self = CALL0(SYS_getpid);
		long thread = 0;

		(void)CALL1(SYS_thr_self, &thread);
		handle(SIGUSR1);
		REQUIRE_EQUAL(CALL2(SYS_kill, self, SIGUSR1), 0); /* delivered at once */
		REQUIRE_EQUAL(handled, 1);
		REQUIRE_EQUAL(CALL2(SYS_thr_kill, thread, SIGUSR1), 0);
		REQUIRE_EQUAL(handled, 2);
		block(SIGUSR1);
		REQUIRE_EQUAL(CALL2(SYS_kill, self, 0), 0); /* no signal: only asks */
		REQUIRE_EQUAL(CALL2(SYS_kill, self, SIGUSR1), -EPERM);
		REQUIRE_EQUAL(CALL3(SYS_sigqueue, self, SIGUSR1, 1), -EPERM);
		REQUIRE_EQUAL(CALL2(SYS_thr_kill, thread, SIGUSR1), -EPERM);
		REQUIRE_EQUAL(CALL3(SYS_thr_kill2, self, thread, SIGUSR1), -EPERM);
		end_session();
	}
	handle(SIGUSR1);
	run_session(event.descriptor);
	REQUIRE_EQUAL(handled, 0);
}

/* The kernel sends SIGPIPE to the thread, and the thread is every context's. */
static void
signals_of_its_calls(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int ends[2], session;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, ends, 0), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	if (create(&spec, &event)) {
		sigset_t pending = {{0}};

		block(SIGPIPE);
		REQUIRE_EQUAL(CALL3(SYS_write, ends[1], "x", 1), -EPIPE);
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		REQUIRE_EQUAL(CALL1(SYS_sigpending, &pending), 0); /* it has kept it */
		REQUIRE_EQUAL(pending.__bits[0], only(SIGPIPE).__bits[0]);
		end_session();
	}
	session = event.descriptor;
	handle(SIGPIPE);
	run_session(session);
	REQUIRE_EQUAL(handled, 0);
	run_session(session);
	REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
	REQUIRE_EQUAL(handled, 0);
}

const struct check isolation_checks[] = {
    {"a session's profile ends with it", profile_ends, 0},
    {"a temporary signal mask is not the monitor's", temporary_mask, 0},
    {"a wake-up for oneself is not the monitor's", wakeup_for_itself, 0},
    {"no cycle of monitors", no_cycle_of_monitors, 0},
    {"a monitor ends with its last descriptor", monitor_is_closed, 0},
    {"monitored by nobody", monitored_by_nobody, 0},
    {"calls on the process go to the monitor", calls_on_the_process, 0},
    {"nor on behalf of a copy", calls_on_the_process_on_behalf, 0},
    {"a session cannot leave a signal pending", signals_to_itself, 0},
    {"signals of a context's calls stay with it", signals_of_its_calls, 0},
    {NULL, NULL, 0},
};
