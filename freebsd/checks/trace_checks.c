/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a session could leave in its process for others, by the process' signals and counts.
 */
#include <sys/fcntl.h>
#include <sys/filio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signal.h>
#include <sys/sysctl.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"
#include "session.h"

#define USER 1001
#define FREEBSD4_SIGACTION 342

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

/* A session that ignores SIGCHLD, by one of two calls, takes the stub's children from it. */
static void
children_of_the_stub(int call)
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
		REQUIRE_EQUAL(CALL3(call, SIGCHLD, &action, NULL), -EPERM);
		(void)CALL3(SYS_write, go[1], "x", 1);
		pause_for(500);
		end_session();
	}
	run_session(event.descriptor);
	REQUIRE_EQUAL(wait_for(child), 5);
}

static void
children_and_sigaction(void)
{
	children_of_the_stub(SYS_sigaction);
}

static void
children_and_the_older_sigaction(void)
{
	children_of_the_stub(FREEBSD4_SIGACTION);
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
		for (uint64_t above = 0; above < 4; above++) {
			int on = 1;

			REQUIRE_EQUAL(
			    CALL3(SYS_ioctl, ends[0], FIOASYNC | above << 32, &on), -EPERM);
			REQUIRE_EQUAL(
			    CALL3(SYS_ioctl, ends[0], FIOSETOWN | above << 32, &on), -EPERM);
		}
		end_session();
	}
	run_session(event.descriptor);
}

/* A variable of the machine with a name of two numbers, as the one for names has. */
static void
variables_of_the_machine(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	const int hostname[] = {CTL_KERN, KERN_HOSTNAME};
	const int name_to_number[] = {CTL_SYSCTL, CTL_SYSCTL_NAME2OID};
	const char name[] = "kern.hostname";
	int number[8];
	size_t size = sizeof(number);

	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL6(SYS___sysctl, hostname, 2, NULL, NULL, "x", 1), -EPERM);
		REQUIRE_EQUAL(CALL6(SYS___sysctl, 8, 2, NULL, NULL, "x", 1), -EPERM);
		REQUIRE_EQUAL(
		    CALL6(SYS___sysctl, name_to_number, 2, number, &size, name, sizeof(name) - 1),
		    0);
		REQUIRE_EQUAL(size, sizeof(hostname));
		REQUIRE_EQUAL(memcmp(number, hostname, size), 0);
		end_session();
	}
	run_session(event.descriptor);
}

/* Pages of a file are in memory for all who have it. */
static void
pages_in_memory(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;
	int file = open_file("/tmp/pages", O_RDWR | O_CREAT, 0600);
	char resident[4], *pages;

	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/pages"), 0);
	REQUIRE_EQUAL(CALL2(SYS_ftruncate, file, 4 * 4096), 0);
	pages = (char *)CALL6(SYS_mmap, NULL, 4 * 4096, PROT_READ, MAP_PRIVATE, file, 0);
	REQUIRE((long)pages > 0);
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL3(SYS_msync, pages, 4096, MS_INVALIDATE), -EPERM);
		REQUIRE_EQUAL(CALL3(SYS_msync, pages, 4096, MS_SYNC | MS_INVALIDATE), -EPERM);
		REQUIRE_EQUAL(CALL3(SYS_msync, pages, 4096, MS_SYNC), 0);
		REQUIRE_EQUAL(CALL3(SYS_mincore, pages, 4 * 4096, resident), -EPERM);
		end_session();
	}
	run_session(event.descriptor);
}

/* Numbers that count would tell how many contexts others have made since. */
static void
numbers_of_contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t before = 0, near = 0;

	for (int i = 0; i < 8; i++) {
		REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
		near += event.context - before < 1u << 20 || before - event.context < 1u << 20;
		before = event.context;
		REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	}
	REQUIRE_EQUAL(near, 0);
}

#if defined(__x86_64__)
/* The flag by which a processor traps after the next instruction. */
static void
set_trap_flag(long number)
{
	struct lwc_event event;
	struct lwc_message message = {0};
	register struct lwc_event *third __asm__("rdx") = &event;
	long result = number;

	__asm__ volatile("	sub $128, %%rsp\n" /* what is below it is in use */
			 "	pushfq\n"
			 "	orq $0x100, (%%rsp)\n"
			 "	popfq\n"
			 "	syscall\n"
			 "	pushfq\n"
			 "	andq $~0x100, (%%rsp)\n"
			 "	popfq\n"
			 "	add $128, %%rsp\n"
			 : "+a"(result), "+r"(third)
			 : "D"((long)LWC_CALLER), "S"(&message)
			 : "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
	REQUIRE_EQUAL(result, EBUSY);
}

/* A trap after a call would come to the context in which the call ends. */
static void
traps_stay(void)
{
	struct lwc_spec spec = session_spec();
	struct lwc_event event;

	if (create(&spec, &event)) {
		handle(SIGTRAP);
		set_trap_flag(calls.switch_to);
		REQUIRE(handled > 0);
		end_session();
	}
	handle(SIGTRAP);
	run_session(event.descriptor);
	REQUIRE_EQUAL(handled, 0);
}
#endif

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
    {"a session does not take the stub's children", children_and_sigaction, 0},
    {"nor by the older call", children_and_the_older_sigaction, 0},
    {"files do not send signals to the process", signals_of_files, 0},
    {"a session writes no variables, and may ask for their numbers", variables_of_the_machine, 0},
    {"which pages are in memory is not told", pages_in_memory, 0},
    {"contexts are not numbered one after the other", numbers_of_contexts, 0},
#if defined(__x86_64__)
    {"a trap after an instruction stays with its context", traps_stay, 0},
#endif
    {"how many were withheld is not told", withheld_is_not_told, 0},
    {NULL, NULL, 0},
};
