/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Contexts and the rest of the process's life: limits, fork, exec, exit, threads.
 */
#include <sys/aio.h>
#include <sys/fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signal.h>
#include <sys/thr.h>
#include <sys/unistd.h>

#include "check.h"
#include "treatment_list.h"

static void
limit_of_a_process(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int64_t limit = read_variable("shai.limit.contexts_per_process");

	REQUIRE_EQUAL(write_variable("shai.limit.contexts_per_process", 5), 0);
	for (int i = 0; i < 4; i++)
		if (create(&spec, &event))
			leave(1);
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EAGAIN);
	REQUIRE_EQUAL(CALL1(SYS_close, 3), 0);
	if (create(&spec, &event)) /* there is room again */
		leave(1);
	REQUIRE_EQUAL(write_variable("shai.limit.contexts_per_process", (uint32_t)limit), 0);
}

static void
limit_of_a_user(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int64_t limit = read_variable("shai.limit.contexts_per_user");
	int go[2];
	long other;
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_pipe2, go, 0), 0);
	REQUIRE_EQUAL(write_variable("shai.limit.contexts_per_user", 4), 0);
	other = CALL0(SYS_fork);
	if (other == 0) {
		(void)CALL1(SYS_close, go[0]);
		for (int i = 0; i < 2; i++)
			if (create(&spec, &event))
				leave(1);
		(void)CALL3(SYS_write, go[1], "x", 1);
		for (;;)
			(void)CALL2(SYS_sigsuspend, &(sigset_t){{0}}, 0);
	}
	REQUIRE_EQUAL(CALL3(SYS_read, go[0], &byte, 1), 1);
	/*
	 * There are three contexts there, so one is allowed here: the one that the
	 * process is in.
	 */
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EAGAIN);
	REQUIRE_EQUAL(CALL2(SYS_kill, other, SIGKILL), 0);
	REQUIRE_EQUAL(wait_for(other), 256 + SIGKILL);
	REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
	REQUIRE_EQUAL(write_variable("shai.limit.contexts_per_user", (uint32_t)limit), 0);
}

static void
exit_in_a_context(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	for (int i = 0; i < 10; i++)
		if (create(&spec, &event))
			leave(i == 9 ? 0 : 1);
	(void)lwc_switch(event.descriptor, 0, 0, &event);
	leave(2);
}

static void
killed_in_a_context(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	if (create(&spec, &event))
		for (;;)
			(void)CALL2(SYS_kill, CALL0(SYS_getpid), SIGKILL);
	(void)lwc_switch(event.descriptor, 0, 0, &event);
}

static void
fork_with_contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long child;

	if (create(&spec, &event)) {
		/* The child starts in the context's state, as an ordinary process. */
		child = CALL0(SYS_fork);
		if (child == 0) {
			REQUIRE_EQUAL(lwc_switch(3, 0, 0, &event), -ESRCH);
			REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFD), -EBADF);
			leave(read_variable("shai.count.processes") == 1 ? 5 : 6);
		}
		(void)lwc_switch(LWC_CALLER, (uint64_t)wait_for(child), 0, &event);
	}
	child = CALL0(SYS_fork);
	if (child == 0) {
		REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, 0, &event), -ESRCH);
		REQUIRE_EQUAL(CALL2(SYS_fcntl, event.descriptor, F_GETFD), -EBADF);
		/* It may have contexts of its own. */
		if (create(&spec, &event))
			leave(7);
		(void)lwc_switch(event.descriptor, 0, 0, &event);
	}
	REQUIRE_EQUAL(wait_for(child), 7);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 5);
	REQUIRE_EQUAL(CALL1(SYS_rfork, RFPROC | RFMEM), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL1(SYS_rfork, RFPROC), -EOPNOTSUPP);
	child = CALL1(SYS_rfork, RFPROC | RFFDG);
	if (child == 0)
		leave(8);
	REQUIRE_EQUAL(wait_for(child), 8);
}

int
executed(const char *argument)
{
	struct lwc_event event;

	if (!lookup_calls())
		return 20;
	if (text_equal(argument, "descriptor"))
		return executed_with_descriptor();
	if (CALL2(SYS_fcntl, 3, F_GETFD) != -EBADF)
		return 21;
	if (lwc_switch(3, 0, 0, &event) != -ESRCH)
		return 22;
	if (read_variable("shai.count.contexts") != 0)
		return 23;
	if (CALL0(SYS_getpid) <= 0)
		return 24;
	return 11;
}

static void
exec_with_contexts(void)
{
	static const char nothing[] = "nothing";
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long child;

	for (int in_context = 0; in_context < 2; in_context++) {
		child = CALL0(SYS_fork);
		if (child == 0) {
			if (create(&spec, &event))
				execute(nothing);
			if (create(&spec, &event))
				leave(1);
			if (in_context)
				(void)lwc_switch(3, 0, 0, &event);
			execute(nothing);
		}
		REQUIRE_EQUAL(wait_for(child), 11);
	}
	/* After a failure everything is as before. */
	if (create(&spec, &event)) {
		(void)lwc_switch(LWC_CALLER, 12, 0, &event);
		leave(1);
	}
	REQUIRE_EQUAL(
	    CALL3(SYS_execve, "/missing", ((char *[]){"x", NULL}), (char *[]){NULL}), -ENOENT);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 12);
}

/* Always inlined: if a function returned twice, the child would overwrite its frame. */
static inline __attribute__((always_inline)) long
vfork_here(void)
{
#if defined(__x86_64__)
	long result = SYS_vfork;

	__asm__ volatile("syscall" : "+a"(result) : : "rcx", "rdx", "r11", "memory", "cc");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_vfork;
	register long x0 __asm__("x0");

	__asm__ volatile("svc #0" : "=r"(x0) : "r"(x8) : "x1", "memory", "cc");
	return x0;
#endif
}

static void
vfork_with_contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	static volatile long refused;
	long child;

	if (create(&spec, &event)) {
		(void)lwc_switch(LWC_CALLER, 12, 0, &event);
		leave(1);
	}
	/* The child borrows our memory, and cannot have contexts in it. */
	child = vfork_here();
	if (child == 0) {
		struct lwc_event nothing;

		refused = lwc_create(&spec, &nothing);
		leave(9);
	}
	REQUIRE_EQUAL(wait_for(child), 9);
	REQUIRE_EQUAL(refused, -EBUSY);
	REQUIRE_EQUAL(lwc_switch(event.descriptor, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(event.argument, 12);
}

static volatile int thread_state;

static void
thread(void *argument)
{
	(void)argument;
	thread_state = 1;
	while (thread_state != 2)
		(void)CALL0(SYS_sched_yield);
	thread_state = 3;
	for (;;)
		(void)CALL1(SYS_thr_exit, NULL);
}

static long
start_thread(void)
{
	static char storage[64];
	char *stack = map_pages(16);
	struct thr_param parameters;

	memset(&parameters, 0, sizeof(parameters));
	parameters.start_func = thread;
	parameters.stack_base = stack;
	parameters.stack_size = 16 * 4096;
	parameters.tls_base = storage;
	return CALL2(SYS_thr_new, &parameters, sizeof(parameters));
}

static void
no_contexts_with_threads(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	REQUIRE_EQUAL(start_thread(), 0);
	while (thread_state == 0)
		(void)CALL0(SYS_sched_yield);
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EBUSY);
	REQUIRE_EQUAL(lwc_restrict(LWC_SELF, &(struct lwc_restriction){0}), -EBUSY);
	thread_state = 2;
	/* The thread ends some time after it says so. */
	while (lwc_create(&spec, &event) == -EBUSY)
		(void)CALL0(SYS_sched_yield);
	REQUIRE_EQUAL(thread_state, 3);
}

static void
no_threads_with_contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(start_thread(), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	REQUIRE_EQUAL(start_thread(), -EOPNOTSUPP); /* once with contexts, always */
}

static void
no_asynchronous_input(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct aiocb block;

	memset(&block, 0, sizeof(block));
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(CALL1(SYS_aio_read, &block), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL1(SYS_aio_write, &block), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL4(SYS_lio_listio, 0, NULL, 0, NULL), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL1(SYS_jail_attach, 1), -EOPNOTSUPP);
}

#define MADE(number, name) [number] = true,

/* What is refused, and what nobody has decided on, whatever the kernel has there. */
static void
no_other_calls(void)
{
	static bool made[LWC_CALLS_MAX] = {CALLS_NATIVE(MADE) CALLS_OWN(MADE) CALLS_SHARED(MADE)
		CALLS_FORK(MADE) CALLS_EXECUTE(MADE)};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int refused = 0;

	ignore_signal(SIGSYS);
	for (size_t i = 0; i < sizeof(calls) / sizeof(long); i++)
		made[((const long *)&calls)[i]] = true;
	if (create(&spec, &event))
		leave(1);
	for (int number = 0; number < LWC_CALLS_MAX; number++) {
		if (made[number])
			continue;
		if (CALL1(SYS___syscall, number) != -EOPNOTSUPP) {
			say_number(number);
			say(" is not refused\n");
			refused = -1000;
		}
		refused++;
	}
	REQUIRE(refused > 0);
	REQUIRE_EQUAL(CALL0(5000), -EOPNOTSUPP);
	REQUIRE_EQUAL(CALL0(-1), -EOPNOTSUPP);
}

static void
no_shared_segments(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long segment = CALL3(SYS_shmget, IPC_PRIVATE, 4096, 0600);
	long address = CALL3(SYS_shmat, segment, 0, 0);

	REQUIRE(segment >= 0 && address > 0);
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EBUSY);
	REQUIRE_EQUAL(CALL1(SYS_shmdt, address), 0);
	/* The kernel remembers that there was one. */
	REQUIRE_EQUAL(lwc_create(&spec, &event), -EBUSY);
	REQUIRE_EQUAL(CALL3(SYS_shmctl, segment, IPC_RMID, 0), 0);
}

const struct check process_checks[] = {
    {"limit of a process", limit_of_a_process, 0},
    {"limit of a user", limit_of_a_user, 0},
    {"exit in a context", exit_in_a_context, 0},
    {"killed in a context", killed_in_a_context, SIGKILL},
    {"fork with contexts", fork_with_contexts, 0},
    {"exec with contexts", exec_with_contexts, 0},
    {"vfork with contexts", vfork_with_contexts, 0},
    {"no contexts with threads", no_contexts_with_threads, 0},
    {"no threads with contexts", no_threads_with_contexts, 0},
    {"no asynchronous I/O, no change of jail", no_asynchronous_input, 0},
    {"no call that nobody has decided on", no_other_calls, 0},
    {"no System V segments", no_shared_segments, 0},
    {NULL, NULL, 0},
};
