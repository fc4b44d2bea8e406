/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Load and races: many processes at once, killed at any moment, and looked at by
 * others while they switch.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/sysctl.h>
#include <sys/unistd.h>

#include "check.h"

static void
pause_for(uint64_t duration)
{
	struct {
		long seconds, nanoseconds;
	} delay = {(long)(duration / 1000000000), (long)(duration % 1000000000)};

	(void)CALL2(SYS_nanosleep, &delay, NULL);
}

static uint32_t
next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Endless sessions: a monitor, a clean template, and copies that make requests to it. */
static void
serve_sessions(char *page)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	int template;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event)) {
		page[0]++;
		(void)open_file("/dev/null", O_RDONLY, 0);
		page[4096]++;
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	template = event.descriptor;
	spec = plain_spec();
	spec.source = template;
	for (;;) {
		int session;

		if (lwc_create(&spec, &event) != 0)
			continue;
		session = event.descriptor;
		REQUIRE_EQUAL(lwc_switch(session, 0, LWC_CALL, &event), 0);
		REQUIRE_EQUAL(event.kind, LWC_EVENT_REDIRECTED);
		(void)lwc_syscall(session, LWC_USE_FILES | LWC_USE_MEMORY, SYS_open,
		    (long)event.arguments[0], O_RDONLY, 0);
		(void)lwc_answer(session, 3, 0, &event);
		REQUIRE_EQUAL(page[0], 0);
		REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
	}
}

static void
killed_at_any_moment(void)
{
	uint32_t random = 2463534242u;
	char *page = map_pages(2);

	for (int round = 0; round < 40; round++) {
		long child[3];

		for (int i = 0; i < 3; i++) {
			child[i] = CALL0(SYS_fork);
			if (child[i] == 0)
				serve_sessions(page);
		}
		pause_for(next_random(&random) % 20000000);
		for (int i = 0; i < 3; i++) {
			REQUIRE_EQUAL(CALL2(SYS_kill, child[i], SIGKILL), 0);
			REQUIRE_EQUAL(wait_for(child[i]), 256 + SIGKILL);
		}
		REQUIRE_EQUAL(read_variable("shai.count.contexts"), 0);
	}
}

static volatile int signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

/* Signals arrive all the time; each is handled once, in the current context. */
static void
signals_meanwhile(void)
{
	int *shared = map_pages(1);
	struct lwc_range range = {.start = (uint64_t)shared, .length = 4096, .mode = LWC_SHARE};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct sigaction action;
	long child, self = CALL0(SYS_getpid);
	int context;

	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	REQUIRE_EQUAL(CALL3(SYS_sigaction, SIGUSR1, &action, NULL), 0);
	spec.ranges = &range;
	spec.range_count = 1;
	if (create(&spec, &event)) {
		for (;;) {
			shared[0] = signals;
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		}
	}
	context = event.descriptor;
	child = CALL0(SYS_fork);
	if (child == 0) {
		for (int i = 0; i < 2000; i++)
			(void)CALL2(SYS_kill, self, SIGUSR1);
		leave(0);
	}
	for (int i = 0; i < 5000 || signals + shared[0] == 0; i++)
		REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(wait_for(child), 0);
	REQUIRE(signals > 0 || shared[0] > 0);
}

static void
look_at(int pid)
{
	static char buffer[65536];
	static const int kinds[] = {KERN_PROC_PID, KERN_PROC_FILEDESC, KERN_PROC_VMMAP,
	    KERN_PROC_CWD, KERN_PROC_SIGTRAMP, KERN_PROC_AUXV, KERN_PROC_SV_NAME, KERN_PROC_KSTACK};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int name[4] = {CTL_KERN, KERN_PROC, kinds[i], pid};
		size_t size = sizeof(buffer);

		(void)CALL6(SYS___sysctl, name, 4, buffer, &size, NULL, 0);
	}
}

/* Reads what procstat(1) reads, while the process switches. */
static void
looked_at_meanwhile(void)
{
	char *page = map_pages(2);
	uint64_t end;
	long child[2];

	for (int i = 0; i < 2; i++) {
		child[i] = CALL0(SYS_fork);
		if (child[i] == 0)
			serve_sessions(page);
	}
	end = nanoseconds() + 4000000000u;
	while (nanoseconds() < end) {
		look_at((int)child[0]);
		look_at((int)child[1]);
	}
	for (int i = 0; i < 2; i++) {
		REQUIRE_EQUAL(CALL2(SYS_kill, child[i], SIGKILL), 0);
		REQUIRE_EQUAL(wait_for(child[i]), 256 + SIGKILL);
	}
}

/* Compares the kernel's own counts of its objects before and after many contexts. */
static void
nothing_leaks(void)
{
	static const char *const zones[] = {"vm.uma.VMSPACE.stats.current",
	    "vm.uma.filedesc0.stats.current", "vm.uma.Files.stats.current",
	    "vm.uma.MAP_ENTRY.stats.current", "vm.uma.VM_OBJECT.stats.current"};
	int64_t before[5];
	char *page = map_pages(2);
	long child;

	for (int round = 0; round < 12; round++) {
		child = CALL0(SYS_fork);
		if (child == 0)
			serve_sessions(page);
		pause_for(300000000);
		REQUIRE_EQUAL(CALL2(SYS_kill, child, SIGKILL), 0);
		REQUIRE_EQUAL(wait_for(child), 256 + SIGKILL);
		for (int i = 0; i < 5; i++) {
			int64_t now = read_variable(zones[i]);

			REQUIRE(now > 0);
			if (round == 1)
				before[i] = now;
			/*
			 * Other processes and caches change the counts; a leak would be
			 * hundreds.
			 */
			if (round > 1 && now > before[i] + 40)
				require_equal(now, before[i], "nothing_leaks", zones[i]);
		}
	}
}

const struct check stress_checks[] = {
    {"40 rounds of processes killed at any moment", killed_at_any_moment, 0},
    {"signals while switching", signals_meanwhile, 0},
    {"looked at while switching", looked_at_meanwhile, 0},
    {"kernel objects before and after", nothing_leaks, 0},
    {NULL, NULL, 0},
};
