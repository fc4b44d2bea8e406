/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions of a sealed worker that execute a program of their client, and sessions that tell
 * theirs all that they find.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "shai_rollback.h"
#include "shai_wire.h"
#include "victim.h"

#define PAGE 4096
#define ENTRY 128   /* offset of a program's first instruction; what is before it is data */
#define BEYOND 32   /* descriptors after the reserved ones that are looked at */
#define COMPONENTS (SHAI_ROLLBACK_VECTORS_USED / 8)
#define SIGNALS 64
#define LIMITS 16

/* What record_registers finds: the order is the assembly's. */
static struct {
	uint64_t general[16]; /* as instructions number them; but general[4] is the stack pointer */
	uint64_t flags, selectors[4], bases[2];
} registers __attribute__((used));
static uint64_t vectors[SHAI_ROLLBACK_VECTORS_SIZE / 8] __attribute__((aligned(64), used));

static char arena[1 << 14] __attribute__((aligned(PAGE)));

/* One fact that a session finds: the test compares them. */
static struct {
	char kind[16];
	uint64_t index, value;
} facts[4096];
static size_t count;

__asm__(".text\n"
	".globl record_registers\n"
	"record_registers:\n"
	"	mov %rax, registers+0(%rip)\n"
	"	mov %rcx, registers+8(%rip)\n"
	"	mov %rdx, registers+16(%rip)\n"
	"	mov %rbx, registers+24(%rip)\n"
	"	mov %rsp, registers+32(%rip)\n"
	"	mov %rbp, registers+40(%rip)\n"
	"	mov %rsi, registers+48(%rip)\n"
	"	mov %rdi, registers+56(%rip)\n"
	"	mov %r8, registers+64(%rip)\n"
	"	mov %r9, registers+72(%rip)\n"
	"	mov %r10, registers+80(%rip)\n"
	"	mov %r11, registers+88(%rip)\n"
	"	mov %r12, registers+96(%rip)\n"
	"	mov %r13, registers+104(%rip)\n"
	"	mov %r14, registers+112(%rip)\n"
	"	mov %r15, registers+120(%rip)\n"
	"	pushfq\n"
	"	pop registers+128(%rip)\n"
	"	mov %ds, %ecx\n"
	"	mov %rcx, registers+136(%rip)\n"
	"	mov %es, %ecx\n"
	"	mov %rcx, registers+144(%rip)\n"
	"	mov %fs, %ecx\n"
	"	mov %rcx, registers+152(%rip)\n"
	"	mov %gs, %ecx\n"
	"	mov %rcx, registers+160(%rip)\n"
	"	rdfsbase %rcx\n"
	"	mov %rcx, registers+168(%rip)\n"
	"	rdgsbase %rcx\n"
	"	mov %rcx, registers+176(%rip)\n"
	"	mov $-1, %eax\n"
	"	mov $-1, %edx\n"
	"	xsave64 vectors(%rip)\n"
	"	mov registers+0(%rip), %rax\n"
	"	ret\n");

long
allow_programs(void)
{
	return mprotect(arena, sizeof(arena), PROT_READ | PROT_WRITE | PROT_EXEC);
}

void *
program_arena(void)
{
	return arena;
}

_Noreturn void
run_program(int connection, size_t size)
{
	pid_t process = getpid();
	size_t length = 0;

	if (size > sizeof(arena) || write(connection, &process, sizeof(process)) != sizeof(process))
		_exit(EIO);
	while (length < size) {
		ssize_t part = read(connection, arena + length, size - length);

		if (part <= 0)
			_exit(EIO);
		length += (size_t)part;
	}
	((void (*)(void))(arena + ENTRY))();
	_exit(EIO);
}

static void
note(const char *kind, uint64_t index, uint64_t value)
{
	if (count == sizeof(facts) / sizeof(facts[0]))
		_exit(E2BIG);
	strncpy(facts[count].kind, kind, sizeof(facts[count].kind));
	facts[count].index = index;
	facts[count++].value = value;
}

static uint64_t
hash(const void *memory, size_t size)
{
	const uint64_t *words = memory;
	uint64_t result = 0xcbf29ce484222325;

	for (size_t i = 0; i < size / sizeof(*words); i++)
		result = (result ^ words[i] ^ result >> 29) * 0x9e3779b97f4a7c15;
	return result;
}

/*
 * Notes the registers. Which components of the vector state are in use can differ between workers,
 * so this is compared with what was sealed.
 */
static void
note_registers(void)
{
	const uint64_t *sealed = (void *)(SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_VECTORS);

	for (uint64_t i = 0; i < sizeof(registers) / 8; i++)
		note("register", i, ((const uint64_t *)&registers)[i]);
	note("vectors in use", 0, vectors[COMPONENTS] ^ sealed[COMPONENTS]);
	vectors[COMPONENTS] = 0;
	for (uint64_t i = 0; i < sizeof(vectors); i += 64)
		note("vector state", i, hash((const char *)vectors + i, 64));
}

/* Notes a hash of each page that the worker can write. */
static void
note_memory(void)
{
	const struct shai_rollback_state *state = (void *)SHAI_ROLLBACK_STATE;

	for (uint64_t i = 0; i < state->range_count; i++)
		for (uint64_t offset = 0; offset < state->range[i].length; offset += PAGE) {
			uint64_t address = state->range[i].destination + offset;

			note("memory", address, hash((void *)address, PAGE));
		}
}

/* Makes a call that fills answer; notes its result and the answer. */
#define ASK(kind, index, answer, ...)                                                         \
	do {                                                                                  \
		memset(&(answer), 0, sizeof(answer));                                         \
		note(kind, index, syscall(__VA_ARGS__) < 0 ? (uint64_t)-errno : 0);          \
		note(kind, index, hash(&(answer), sizeof(answer)));                           \
	} while (0)

/* Asks the kernel what it allows a sealed worker to know of itself. */
static void
note_process(void)
{
	uint64_t words[128];

	for (uint64_t signal = 1; signal <= SIGNALS; signal++)
		ASK("signal action", signal, words, SYS_rt_sigaction, signal, NULL, words, 8L);
	ASK("signal mask", 0, words, SYS_rt_sigprocmask, SIG_BLOCK, NULL, words, 8L);
	ASK("signal pending", 0, words, SYS_rt_sigpending, words, 8L);
	ASK("signal stack", 0, words, SYS_sigaltstack, NULL, words);
	for (uint64_t limit = 0; limit < LIMITS; limit++)
		ASK("limit", limit, words, SYS_prlimit64, 0L, limit, NULL, words);
	ASK("scheduling", 0, words, SYS_sched_getattr, 0L, words, 48L, 0L);
	ASK("affinity", 0, words, SYS_sched_getaffinity, 0L, sizeof(words), words);
	ASK("groups", 0, words, SYS_getgroups, 64L, words);
	ASK("user", 0, words, SYS_getresuid, words, words + 1, words + 2);
	ASK("directory", 0, words, SYS_getcwd, words, sizeof(words));
	for (uint64_t which = 0; which < 3; which++) {
		note("priority", which, (uint64_t)syscall(SYS_getpriority, which, 0L));
		note("io priority", which, (uint64_t)syscall(SYS_ioprio_get, which, 0L));
	}
}

/* Also asks, by select, whether the table of descriptors has room for one that is closed. */
static void
note_descriptors(void)
{
	struct timeval at_once = {0, 0};
	uint64_t numbers[16] = {0};
	struct stat about;

	numbers[15] = 1;
	note("select", 0, (uint64_t)syscall(SYS_select, 1024, numbers, NULL, NULL, &at_once));
	for (int number = 0; number < SHAI_FD_RESERVED_END + BEYOND; number++) {
		note("fd flags", (uint64_t)number, (uint64_t)syscall(SYS_fcntl, number, F_GETFD));
		note("fd status", (uint64_t)number, (uint64_t)syscall(SYS_fcntl, number, F_GETFL));
		note("fd position", (uint64_t)number, (uint64_t)syscall(SYS_lseek, number, 0L, SEEK_CUR));
		note("fd type", (uint64_t)number, fstat(number, &about) < 0 ? 0 : about.st_mode);
	}
}

_Noreturn void
tell_facts(int connection)
{
	count = 0;
	note_registers();
	note_memory();
	note_process();
	note_descriptors();
	note("process", 0, (uint64_t)getpid()); /* the last one: it is in no page above */
	for (size_t length = 0; length < count * sizeof(facts[0]);) {
		ssize_t part = write(connection, (const char *)facts + length, count * sizeof(facts[0]) - length);

		if (part <= 0)
			_exit(EIO);
		length += (size_t)part;
	}
	if (read(connection, facts, 1) != 1) /* while the test looks at the worker from outside */
		_exit(EIO);
	((void (*)(void))SHAI_ROLLBACK_CODE)();
	_exit(EIO);
}
