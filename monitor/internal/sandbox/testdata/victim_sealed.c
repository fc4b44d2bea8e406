/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program whose workers are sealed and rolled back, without libshai: its sessions make the
 * system calls that their clients ask for. Before it is sealed a worker may deviate from what
 * libshai does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "shai_gate.h"
#include "shai_rollback.h"
#include "shai_wire.h"
#include "victim.h"

#define PAGE 4096

static const char *deviation;
static struct {
	struct sock_fprog head;
	struct sock_filter instructions[SHAI_ROLLBACK_FILTER_MAX];
} program;
static char session_stack[1 << 16] __attribute__((aligned(16)));
static char buffer[1 << 12] __attribute__((aligned(PAGE))); /* for the calls of sessions */
static long sessions;                                       /* that this memory has seen */

static bool
deviates(const char *how)
{
	return strcmp(deviation, how) == 0;
}

static void *
at(uint64_t address)
{
	return (void *)address; /* NOLINT: fixed addresses are the interface */
}

/* Makes the call whose number and arguments a command lists, or answers it otherwise. */
static long
obey(const char *command)
{
	unsigned long a[7] = {0};
	char *rest;
	long result;

	if (strcmp(command, "end") == 0)
		((void (*)(void))at(SHAI_ROLLBACK_CODE))();
	if (strcmp(command, "exit") == 0)
		_exit(WORKER_SUCCEEDED);
	if (strcmp(command, "count") == 0)
		return sessions;
	if (strcmp(command, "arena") == 0)
		return (long)program_arena();
	if (strncmp(command, "put ", 4) == 0)
		strcpy(buffer, command + 4);
	if (strncmp(command, "put ", 4) == 0 || strcmp(command, "buffer") == 0)
		return (long)buffer;
	rest = (char *)command;
	for (int i = 0; i < 7; i++)
		a[i] = strtoul(rest, &rest, 0);
	result = syscall((long)a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	return result < 0 ? -(long)errno : result;
}

/* Obeys the commands of a client, one after the other. */
__attribute__((noreturn, used)) static void
session(long connection)
{
	char command[256], answer[64];
	ssize_t size;

	sessions++;
	while (connection >= 0 && (size = read((int)connection, command, sizeof(command) - 1)) > 0) {
		command[size] = '\0';
		if (strncmp(command, "run ", 4) == 0)
			run_program((int)connection, strtoul(command + 4, NULL, 0));
		if (strcmp(command, "tell") == 0)
			tell_facts((int)connection);
		size = snprintf(answer, sizeof(answer), "%ld", obey(command));
		if (write((int)connection, answer, (size_t)size) != size)
			break;
	}
	_exit(EIO);
}

__asm__(".text\n"
	"session_entry:\n"
	"	call record_registers\n"
	"	mov %rax, %rdi\n"
	"	call session\n"
	"	ud2\n");
extern char session_entry[];

/* Adds what the worker can write to the table. */
static long
collect(struct shai_rollback_state *table)
{
	uint64_t source = SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_SNAPSHOT;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	if (maps == NULL)
		return -1;
	while (fgets(line, sizeof(line), maps) != NULL) {
		uint64_t start, end;
		char permissions[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, permissions) != 3 || permissions[1] != 'w' ||
		    permissions[3] != 'p')
			continue;
		table->range[table->range_count++] = (struct shai_rollback_range){start, source, end - start};
		source += end - start;
	}
	return (long)(source - SHAI_ROLLBACK_STATE);
}

/* Maps a page without permissions below the stack, which then cannot grow. */
static long
guard_stack(void)
{
	uint64_t start = 0, end;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL && strstr(line, "[stack]") == NULL)
		continue;
	if (maps == NULL || sscanf(line, "%lx-%lx", &start, &end) != 2)
		return -1;
	return (long)mmap(at(start - PAGE), PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *
wait_in_thread(void *unused)
{
	(void)unused;
	wait_for_ever();
}

static long
deviate(void)
{
	const int private = MAP_PRIVATE | MAP_ANONYMOUS;
	struct sigaction action = {.sa_handler = _exit};
	struct itimerval later = {{10000, 0}, {10000, 0}};
	timer_t timer;
	pthread_t thread;
	sigset_t set;

	if (!deviates("stack") && guard_stack() < 0)
		return -1;
	if (deviates("random"))
		return allow_programs();
	if (deviates("thread"))
		return -pthread_create(&thread, NULL, wait_in_thread, NULL);
	if (deviates("handler"))
		return sigaction(SIGUSR1, &action, NULL);
	if (deviates("blocked"))
		return sigemptyset(&set) + sigaddset(&set, SIGUSR2) + sigprocmask(SIG_BLOCK, &set, NULL);
	if (deviates("shared"))
		return (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (deviates("grows"))
		return (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, private | MAP_GROWSDOWN, -1, 0);
	if (deviates("cpu-limit"))
		return setrlimit(RLIMIT_CPU, &(struct rlimit){10000, 10000});
	if (deviates("timer"))
		return timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &timer);
	if (deviates("intervals"))
		return setitimer(ITIMER_REAL, &later, NULL) + setitimer(ITIMER_VIRTUAL, &later, NULL) +
		    setitimer(ITIMER_PROF, &later, NULL);
	if (deviates("droppable"))
		return (long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, 0x08 | MAP_ANONYMOUS, -1, 0);
	return 0;
}

/* Maps the roll-back code, or something like it. */
static long
map_code(void)
{
	int protection = PROT_READ | PROT_EXEC;
	void *code;

	if (deviates("no-code"))
		return 0;
	code = mmap(at(SHAI_ROLLBACK_CODE), PAGE, protection, MAP_PRIVATE | MAP_FIXED_NOREPLACE, SHAI_FD_ROLLBACK, 0);
	if (code == MAP_FAILED)
		return -1;
	if (deviates("own-code")) {
		memcpy(buffer, code, PAGE);
		if (mmap(code, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			return -1;
		memcpy(code, buffer, PAGE);
		return mprotect(code, PAGE, protection);
	}
	if (deviates("changed-code")) {
		if (mprotect(code, PAGE, PROT_READ | PROT_WRITE) < 0)
			return -1;
		((char *)code)[PAGE - 1] ^= 1;
		return mprotect(code, PAGE, protection);
	}
	return 0;
}

/* Asks for a grant, and maps what the gate looks at, or something like it. */
static long
map_gate(void)
{
	const int shared = MAP_SHARED | MAP_FIXED_NOREPLACE;
	const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	if (strstr(deviation, "grant") == NULL)
		return 0;
	if (syscall(SYS_accept4, SHAI_FD_GRANT, NULL, NULL, 0L) != SHAI_FD_GRANT)
		return -1;
	if (mmap(at(SHAI_GATE_CLASSES), SHAI_GATE_CLASSES_SIZE, PROT_READ,
		deviates("grant-own-table") ? own : shared, SHAI_FD_CLASSES, 0) == MAP_FAILED)
		return -1;
	if (deviates("grant-not-mapped"))
		return 0;
	return (long)mmap(at(SHAI_GATE_GRANT), SHAI_GATE_GRANT_SIZE, PROT_READ,
	    deviates("grant-forged") ? own : shared, SHAI_FD_GRANT, 0);
}

/* Returns if the worker is not sealed. */
static void
ask_for_seal(void *target)
{
	if (deviates("no-code") || deviates("own-call"))
		(void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, target);
	else
		((void (*)(void *))at(SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_SEAL))(target);
}

/* Makes the state, and asks for the seal. */
static void
seal(void)
{
	static struct shai_rollback_state table;
	struct shai_rollback_state *state;
	long size;
	void *target = &program;

	if (deviate() < 0 || map_code() < 0 || map_gate() < 0 || (size = collect(&table)) < 0)
		return;
	if (deviates("no-state")) {
		ask_for_seal(target);
		return;
	}
	state = mmap(at(SHAI_ROLLBACK_STATE), (size_t)size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (state == MAP_FAILED)
		return;
	table.stack = (uint64_t)(session_stack + sizeof(session_stack));
	table.resume = (uint64_t)session_entry;
	__asm__("mov %%fs:0, %0" : "=r"(table.thread));
	table.unfit = deviates("told-intervals") ? SHAI_ROLLBACK_HAS_TIMERS : 0;
	if (deviates("less"))
		table.range_count--;
	memcpy(state, &table, sizeof(table));
	__asm__ volatile("xsave64 (%0)"
			 :
			 : "r"((char *)state + SHAI_ROLLBACK_VECTORS), "a"(-1), "d"(-1)
			 : "memory");
	*(uint64_t *)((char *)state + SHAI_ROLLBACK_VECTORS + SHAI_ROLLBACK_VECTORS_USED) |= SHAI_ROLLBACK_VECTORS_ALWAYS;
	for (uint64_t i = 0; i < table.range_count; i++)
		memcpy(at(table.range[i].source), at(table.range[i].destination), table.range[i].length);
	if (!deviates("open-state") && mprotect(state, (size_t)size, PROT_READ) < 0)
		return;
	if (deviates("no-room"))
		target = at(SHAI_ROLLBACK_STATE);
	ask_for_seal(target);
}

_Noreturn void
serve_sealed(const char *how)
{
	deviation = how;
	for (;;) {
		long worker = fork_worker();

		if (worker != 0)
			continue;
		seal();
		session(syscall(SYS_accept4, SHAI_FD_LISTEN, NULL, NULL, 0L));
	}
}
