/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures about what the module does.
 */
#include "figures.h"

#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/procctl.h>
#include <sys/signal.h>
#include <sys/stat.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"

#define ROUNDS 2000

void
print_ratio(const char *what, uint64_t of, uint64_t to)
{
	say("figure  ");
	say(what);
	say(": ");
	say_number((int64_t)(of / to));
	say(".");
	say_number((int64_t)(of * 10 / to % 10));
	say_number((int64_t)(of * 100 / to % 10));
	say("\n");
}

/* Returns the nanoseconds for one round trip: two switches. */
static uint64_t
time_switches(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t begun;
	int context;

	if (create(&spec, &event))
		for (;;)
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	context = event.descriptor;
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++)
		(void)lwc_switch(context, 0, LWC_CALL, &event);
	begun = nanoseconds() - begun;
	(void)CALL1(SYS_close, context);
	return begun / ROUNDS;
}

/* Sends a byte to another process and one back. */
static uint64_t
time_pipes(void)
{
	int there[2], back[2];
	uint64_t begun;
	char byte = 0;
	long child;

	(void)CALL2(SYS_pipe2, there, 0);
	(void)CALL2(SYS_pipe2, back, 0);
	child = CALL0(SYS_fork);
	if (child == 0) {
		(void)CALL1(SYS_close, there[1]);
		while (CALL3(SYS_read, there[0], &byte, 1) == 1)
			(void)CALL3(SYS_write, back[1], &byte, 1);
		leave(0);
	}
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++) {
		(void)CALL3(SYS_write, there[1], &byte, 1);
		(void)CALL3(SYS_read, back[0], &byte, 1);
	}
	begun = nanoseconds() - begun;
	(void)CALL1(SYS_close, there[1]);
	(void)wait_for(child);
	return begun / ROUNDS;
}

static uint64_t
time_contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t begun = nanoseconds();

	for (int i = 0; i < ROUNDS / 4; i++) {
		if (create(&spec, &event))
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
		(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
		(void)CALL1(SYS_close, 3);
	}
	return (nanoseconds() - begun) / (ROUNDS / 4);
}

static uint64_t
time_forks(void)
{
	uint64_t begun = nanoseconds();

	for (int i = 0; i < ROUNDS / 4; i++) {
		long child = CALL0(SYS_fork);

		if (child == 0)
			leave(0);
		(void)wait_for(child);
	}
	return (nanoseconds() - begun) / (ROUNDS / 4);
}

static uint64_t
time_redirections(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	uint64_t begun;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event))
		for (;;)
			(void)open_file("/", O_RDONLY, 0);
	(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++)
		(void)lwc_answer(LWC_CALLER, 0, EACCES, &event);
	return (nanoseconds() - begun) / ROUNDS;
}

static void
trapped(int number)
{
	(void)number;
}

/*
 * The same refused call as a SIGTRAP that a handler returns from. In a child, because
 * it is irrevocable.
 */
static uint64_t
time_traps(void)
{
	int enable = PROC_TRAPCAP_CTL_ENABLE;
	struct sigaction action;
	uint64_t begun;

	memset(&action, 0, sizeof(action));
	action.sa_handler = trapped;
	(void)CALL3(SYS_sigaction, SIGTRAP, &action, NULL);
	(void)CALL4(SYS_procctl, P_PID, CALL0(SYS_getpid), PROC_TRAPCAP_CTL, &enable);
	(void)CALL0(SYS_cap_enter);
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++)
		(void)open_file("/", O_RDONLY, 0);
	return (nanoseconds() - begun) / ROUNDS;
}

/* Sends and receives one descriptor in a context with so many capabilities. */
static uint64_t
time_transfers(int capabilities)
{
	static struct shai_conduit batch[SHAI_GRANT_MAX];
	struct stat status;
	uint64_t begun;
	int ends[2], file = open_file("/tmp/figure", O_RDWR | O_CREAT, 0600), received;

	(void)CALL2(SYS_fstat, file, &status);
	for (int done = 0; done < capabilities;) {
		int count =
		    capabilities - done < SHAI_GRANT_MAX ? capabilities - done : SHAI_GRANT_MAX;

		for (int i = 0; i < count; i++)
			batch[i] = (struct shai_conduit){.device = status.st_dev,
			    .file = status.st_ino + (uint64_t)(done + i),
			    .rights = SHAI_CONDUIT_READ | SHAI_CONDUIT_WRITE};
		(void)shai_grant(LWC_SELF, batch, count);
		done += count;
	}
	(void)shai_channel(ends);
	begun = nanoseconds();
	for (int i = 0; i < ROUNDS; i++) {
		(void)shai_send(ends[1], &file, 1);
		(void)shai_receive(ends[0], &received, 1);
		(void)CALL1(SYS_close, received);
	}
	return (nanoseconds() - begun) / ROUNDS;
}

uint64_t
measure(uint64_t (*what)(void))
{
	uint64_t least = UINT64_MAX;
	int ends[2];

	(void)CALL2(SYS_pipe2, ends, 0);
	for (int i = 0; i < 5; i++) {
		uint64_t taken;
		long child = CALL0(SYS_fork);

		if (child == 0) {
			taken = what();
			(void)CALL3(SYS_write, ends[1], &taken, sizeof(taken));
			leave(0);
		}
		(void)CALL3(SYS_read, ends[0], &taken, sizeof(taken));
		(void)wait_for(child);
		least = taken < least ? taken : least;
	}
	(void)CALL1(SYS_close, ends[0]);
	(void)CALL1(SYS_close, ends[1]);
	return least;
}

static uint64_t
transfers_1(void)
{
	return time_transfers(1);
}

static uint64_t
transfers_5(void)
{
	return time_transfers(5);
}

static uint64_t
transfers_100(void)
{
	return time_transfers(100);
}

static uint64_t
transfers_10000(void)
{
	return time_transfers(10000);
}

void
print_figures(void)
{
	uint64_t one = measure(transfers_1);

	print_ratio("pipe round trip between processes / round trip of switches",
	    measure(time_pipes), measure(time_switches));
	print_ratio("fork, exit and wait / create, enter, leave and discard", measure(time_forks),
	    measure(time_contexts));
	print_ratio("SIGTRAP for a refused call / redirection and answer", measure(time_traps),
	    measure(time_redirections));
	print_ratio("transfer with 5 capabilities / with 1", measure(transfers_5), one);
	print_ratio("transfer with 100 capabilities / with 1", measure(transfers_100), one);
	print_ratio("transfer with 10,000 capabilities / with 1", measure(transfers_10000), one);
	print_session_figures();
}
