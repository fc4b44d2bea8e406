/* SPDX-License-Identifier: BSD-2-Clause */
#include "random_steps.h"

#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signal.h>
#include <sys/time.h>
#include <sys/umtx.h>

#include "check.h"

#define DESCRIPTORS_END 16
#define BUFFER_SIZE 16384

static uint32_t state;
static unsigned char buffer[BUFFER_SIZE];
static volatile uint32_t handled;

/* A number below a limit. */
static long
some(uint32_t limit)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return (long)(state % limit);
}

static int
some_descriptor(void)
{
	return RANDOM_FILE + (int)some(DESCRIPTORS_END - RANDOM_FILE);
}

static sigset_t
some_signals(void)
{
	sigset_t set = {{0}};

	set.__bits[0] = (uint32_t)some(4) << (SIGUSR1 - 1) | (uint32_t)some(2) << (SIGPIPE - 1);
	return set;
}

static void
count_signal(int number)
{
	handled += (uint32_t)number;
}

static uint64_t
mask(void)
{
	sigset_t set = some_signals(), old = {{0}};

	(void)CALL3(SYS_sigprocmask, 1 + some(3), &set, &old);
	return old.__bits[0];
}

static uint64_t
pending(void)
{
	sigset_t set = {{0}};

	(void)CALL1(SYS_sigpending, &set);
	return set.__bits[0];
}

static uint64_t
action(void)
{
	struct sigaction new, old;

	memset(&new, 0, sizeof(new));
	memset(&old, 0, sizeof(old));
	new.sa_handler = count_signal;
	new.sa_flags = (int)some(2) * SA_RESTART;
	(void)CALL3(SYS_sigaction, SIGUSR1 + some(2), &new, &old);
	return (uint64_t)(old.sa_handler == count_signal) << 32 | (uint32_t)old.sa_flags;
}

/* Both signals have handlers while a program runs, at the latest from here on. */
static uint64_t
raise(void)
{
	struct sigaction new;
	int number = SIGUSR1 + (int)some(2);

	memset(&new, 0, sizeof(new));
	new.sa_handler = count_signal;
	(void)CALL3(SYS_sigaction, number, &new, NULL);
	return (uint64_t)CALL2(SYS_kill, CALL0(SYS_getpid), number) << 32 | handled;
}

static uint64_t
broken_pipe(void)
{
	struct sigaction new;
	int ends[2];
	long result;

	memset(&new, 0, sizeof(new));
	new.sa_handler = count_signal;
	(void)CALL3(SYS_sigaction, SIGPIPE, &new, NULL);
	if (CALL2(SYS_pipe2, ends, 0) != 0)
		return 1;
	(void)CALL1(SYS_close, ends[0]);
	result = CALL3(SYS_write, ends[1], buffer, 1);
	(void)CALL1(SYS_close, ends[1]);
	return (uint64_t)result << 32 | handled;
}

static uint64_t
alternate_stack(void)
{
	stack_t new = {.ss_sp = buffer, .ss_size = MINSIGSTKSZ + (size_t)some(2) * 64}, old = {0};

	new.ss_flags = some(2) == 0 ? SS_DISABLE : 0;
	(void)CALL2(SYS_sigaltstack, &new, &old);
	return old.ss_size << 8 | (uint32_t)old.ss_flags;
}

static uint64_t
fast_block(void)
{
	static uint32_t word;

	return (uint64_t)CALL2(SYS_sigfastblock, 1 + some(3), &word);
}

static uint64_t
file_mask(void)
{
	return (uint64_t)CALL1(SYS_umask, some(0777));
}

static uint64_t
limits(void)
{
	struct rlimit limit = {0, 0};
	long which = some(9), result = CALL2(SYS_getrlimit, which, &limit);

	limit.rlim_cur -= (rlim_t)(some(2) & (limit.rlim_cur > 1000));
	return (uint64_t)limit.rlim_max + limit.rlim_cur + (uint64_t)result +
	       (uint64_t)CALL2(SYS_setrlimit, which, &limit) * 8;
}

static uint64_t
priority(void)
{
	long old = CALL2(SYS_getpriority, PRIO_PROCESS, 0);

	return (uint64_t)(old * 1000 + CALL3(SYS_setpriority, PRIO_PROCESS, 0, some(5)));
}

static uint64_t
timers(void)
{
	struct itimerval new = {{0, 0}, {100 + some(100), 0}}, old = {{0, 0}, {0, 0}};
	long result = CALL3(SYS_setitimer, some(3), &new, &old);

	return (uint64_t)result << 32 | (uint64_t)old.it_value.tv_sec;
}

static uint64_t
use(void)
{
	struct rusage usage;

	memset(&usage, 0, sizeof(usage));
	return (uint64_t)CALL2(SYS_getrusage, RUSAGE_SELF, &usage) << 32 |
	       (uint64_t)(usage.ru_nsignals + usage.ru_msgsnd);
}

static uint64_t
processors(void)
{
	uint64_t set[4] = {0};
	long result = CALL6(SYS_cpuset_getaffinity, 3, 2, -1, sizeof(set), set, 0);

	set[0] = 1;
	return set[0] + (uint64_t)result * 3 +
	       (uint64_t)CALL6(SYS_cpuset_setaffinity, 3, 2, -1, sizeof(set), set, 0);
}

static uint64_t
profile(void)
{
	return (uint64_t)CALL4(SYS_profil, buffer, sizeof(buffer), 0x200000, 0x10000);
}

static uint64_t
wake(void)
{
	const struct timespec moment = {0, 1000000};
	long self = 0;

	(void)CALL1(SYS_thr_self, &self);
	if (some(2) == 0)
		return (uint64_t)CALL1(SYS_thr_wake, self);
	return (uint64_t)CALL1(SYS_thr_suspend, &moment);
}

static uint64_t
process(void)
{
	static const int numbers[] = {SYS_setsid, SYS_procctl, SYS_thr_set_name, SYS_fork,
	    SYS_getsid, SYS_getpgrp, SYS_issetugid, SYS_getuid, SYS_geteuid};
	long result = CALL3(numbers[some(sizeof(numbers) / sizeof(numbers[0]))], 0, 0, 0);

	return (uint64_t)result;
}

static uint64_t
make_descriptors(void)
{
	int ends[2] = {0, 0};

	switch (some(5)) {
	case 0:
		return (uint64_t)CALL2(SYS_pipe2, ends, some(2) * O_NONBLOCK) +
		       (uint64_t)ends[0] * 64 + (uint64_t)ends[1] * 4096;
	case 1:
		return (uint64_t)shai_channel(ends) + (uint64_t)ends[0] * 64 +
		       (uint64_t)ends[1] * 4096;
	case 2:
		return (uint64_t)CALL0(SYS_kqueue);
	case 3:
		return (uint64_t)CALL3(SYS_shm_open2, 1, O_RDWR, 0600); /* SHM_ANON */
	default:
		return (uint64_t)CALL1(SYS_dup, some_descriptor());
	}
}

static uint64_t
change_descriptors(void)
{
	int descriptor = some_descriptor();

	switch (some(5)) {
	case 0:
		return (uint64_t)CALL1(SYS_close, descriptor);
	case 1:
		return (uint64_t)CALL2(SYS_dup2, descriptor, some_descriptor());
	case 2:
		return (uint64_t)CALL3(SYS_fcntl, descriptor, F_SETFD, some(2));
	case 3:
		return (uint64_t)CALL3(SYS_fcntl, descriptor, F_SETFL, some(2) * O_NONBLOCK);
	default:
		return (uint64_t)CALL2(SYS_flock, descriptor, 1 + some(2));
	}
}

static uint64_t
read_descriptors(void)
{
	int descriptor = some_descriptor();

	switch (some(4)) {
	case 0:
		return (uint64_t)CALL2(SYS_fcntl, descriptor, F_GETFD);
	case 1:
		return (uint64_t)CALL2(SYS_fcntl, descriptor, F_GETFL);
	case 2:
		return (uint64_t)CALL3(SYS_lseek, descriptor, some(3), some(2)); /* SET, CUR */
	default:
		return (uint64_t)CALL3(SYS_lseek, RANDOM_FILE, some(100), some(2));
	}
}

static uint64_t
memory(void)
{
	unsigned char *at = buffer + some(BUFFER_SIZE);
	unsigned char old = *at;
	long address, length = 4096 * (1 + some(4));

	*at = (unsigned char)some(256);
	address = CALL6(SYS_mmap, 0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	if (address <= 0)
		return old;
	old += *(unsigned char *)address;
	*(unsigned char *)address = 1;
	if (some(2) == 0)
		(void)CALL2(SYS_munmap, address, length);
	return old;
}

static uint64_t
contexts(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long result = lwc_create(&spec, &event);

	if (result == 0 && event.kind != LWC_EVENT_CREATED)
		for (;;)
			(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	if (result != 0)
		return (uint64_t)result;
	if (some(2) == 0)
		(void)lwc_switch(event.descriptor, 0, LWC_CALL, &event);
	return some(2) == 0 ? (uint64_t)CALL1(SYS_close, event.descriptor) : 1;
}

static uint64_t
registers(void)
{
#if defined(__x86_64__)
	static uint64_t places[4];
	uint64_t found[4], wanted[4] = {state, state, state, state}, *base = NULL;
	uint32_t control = 0, wanted_control = 0x1f80 | (uint32_t)some(4) << 13;

	__asm__ volatile("vmovdqu %%ymm9, (%0)\n stmxcsr %1\n vmovdqu (%2), %%ymm9\n ldmxcsr %3"
			 :
			 : "r"(found), "m"(control), "r"(wanted), "m"(wanted_control)
			 : "memory", "xmm9");
	(void)CALL2(SYS_sysarch, 128, &base); /* AMD64_GET_FSBASE */
	found[0] += base == NULL ? 99 : (uint64_t)(base - places);
	base = places + some(4);
	(void)CALL2(SYS_sysarch, 129, &base);
	return found[0] + found[3] + *(volatile uint32_t *)&control + handled;
#else
	return 0;
#endif
}

static uint64_t
robust(void)
{
	struct umtx_robust_lists_params lists = {.robust_list_offset = (uintptr_t)buffer};

	return (uint64_t)CALL6(
	    SYS__umtx_op, NULL, UMTX_OP_ROBUST_LISTS, sizeof(lists), &lists, 0, 0);
}

static uint64_t (*const steps[])(void) = {mask, pending, action, raise, broken_pipe,
    alternate_stack, fast_block, file_mask, limits, priority, timers, use, processors, profile,
    wake, process, make_descriptors, make_descriptors, change_descriptors, change_descriptors,
    read_descriptors, read_descriptors, memory, contexts, registers, robust};

void
random_begin(uint32_t seed)
{
	state = seed;
}

uint64_t
random_step(uint32_t *kind)
{
	*kind = (uint32_t)some(sizeof(steps) / sizeof(steps[0]));
	return steps[*kind]();
}
