/* SPDX-License-Identifier: BSD-2-Clause */
#include "sealed.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "packets.h"
#include "testing.h"

#define CONNECTION 7 /* SHAI_FD_CONNECTION, which sealed_evil has as a number */
#define OPENED_LOOKED_AT 200

/* What is restored: the place of what a session finds, data, a stack. Evil memory is not. */
#define FOUND UINT64_C(0x300000000000)
#define DATA UINT64_C(0x300000100000)
#define STACK UINT64_C(0x300000200000)
#define STACK_POINTER (STACK + 0xf000)
#define DIGESTED 0x8000 /* bytes of data and stack, which a session does not use */
#define DIGEST_PRIME UINT64_C(0x100000001b3)
#define SEALED_SEED 0x05
#define SPOILED_SEED 0x41
#define UNTOUCHED_SIZE 0x4000 /* nobody writes it, not even before the worker is sealed */
#define EVIL UINT64_C(0x300000400000)
#define EVIL_SIZE 0x20000
#define SPOILED_VECTORS UINT64_C(0x300000600000)

static const struct region {
	uint64_t start, size;
} regions[] = {
    {FOUND, 0x5000}, {DATA, DIGESTED}, {STACK, 0x10000}, {SEALED_UNTOUCHED, UNTOUCHED_SIZE}};

/* x87, SSE, AVX, three of AVX-512, protection keys. */
static const unsigned components[] = {0, 1, 2, 5, 6, 7, 9};
#define PROTECTION_KEYS 9

/* ------------------------------------------------------------ in the session */

/* The code resumes here. Then: the flags and registers on the stack, the vectors at FOUND. */
__asm__(".text\n"
	"sealed_resume:\n"
	"	pushfq\n"
	"	push %r15; push %r14; push %r13; push %r12; push %r11; push %r10; push %r9\n"
	"	push %r8; push %rdi; push %rsi; push %rbp; push %rsp; push %rbx; push %rdx\n"
	"	push %rcx; push %rax\n"
	"	mov %rsp, %rdi\n"
	"	mov $-1, %eax; mov $-1, %edx; movabs $0x300000000000, %rcx\n"
	"	xsave64 (%rcx)\n"
	"	and $-16, %rsp\n"
	"	call sealed_session\n"
	"	ud2\n"
	/* Loads everything and jumps. rdi: registers, rsi: vectors, rdx: frame for iretq. */
	"sealed_leave:\n"
	"	mov %rdx, %rsp\n"
	"	mov $-1, %eax; mov $-1, %edx; xrstor64 (%rsi)\n"
	"	mov $0x2b, %eax; mov %eax, %ds; mov %eax, %es; mov %eax, %fs; mov %eax, %gs\n"
	"	movabs $0x123456789000, %rax; wrfsbase %rax; wrgsbase %rax\n"
	"	mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
	"	mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
	"	mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12; mov 104(%rdi), %r13; mov 112(%rdi), %r14\n"
	"	mov 120(%rdi), %r15; mov 56(%rdi), %rdi\n"
	"	iretq\n"
	".globl sealed_evil\n"
	"sealed_evil:\n"
	"	mov $1, %eax; mov $7, %edi; lea 1f(%rip), %rsi; mov $4, %edx; syscall\n"
	"	mov $231, %eax; mov $66, %edi; syscall\n"
	"	ud2\n"
	"1:	.ascii \"EVIL\"\n");

extern const char sealed_resume[];
_Noreturn void sealed_leave(
    const uint64_t registers[SEALED_REGISTERS], uint64_t vectors, const uint64_t frame[5]);
_Noreturn void sealed_session(const uint64_t *found);

/* On a stack that goes back to what it was, which the sanitizers' notes about it do not. */
#define IN_SESSION __attribute__((no_sanitize("address", "undefined"), noinline))

IN_SESSION static uint64_t
digest(uint64_t start, uint64_t size, uint64_t sum)
{
	for (const uint64_t *word = (const uint64_t *)start; size > 0; size -= 8)
		sum = (sum ^ *word++) * DIGEST_PRIME;
	return sum;
}

IN_SESSION static uint64_t
digest_memory(void)
{
	return digest(STACK, DIGESTED, digest(DATA, DIGESTED, 0));
}

IN_SESSION static void
look(struct sealed_report *report, const uint64_t *found)
{
	uint64_t *selectors = report->selectors;

	__asm__ volatile("rdfsbase %0" : "=r"(report->fs_base));
	__asm__ volatile("rdgsbase %0" : "=r"(report->gs_base));
	__asm__ volatile("mov %%ds, %0" : "=r"(selectors[0]));
	__asm__ volatile("mov %%es, %0" : "=r"(selectors[1]));
	__asm__ volatile("mov %%fs, %0" : "=r"(selectors[2]));
	__asm__ volatile("mov %%gs, %0" : "=r"(selectors[3]));
	for (int i = 0; i < SEALED_REGISTERS; i++)
		report->registers[i] = found[i];
	report->flags = found[SEALED_REGISTERS];
	/* It was pushed below the flags and eleven registers. */
	report->registers[SEALED_RSP] += 12 * 8;
	report->memory = digest_memory();
	report->opened = 0;
	for (int i = 0; i < OPENED_LOOKED_AT; i++)
		report->opened += syscall(SYS_fcntl, SHAI_ROLLBACK_OPENED + i, F_GETFD) >= 0;
	for (size_t i = 0; i < sizeof(report->vectors); i++)
		report->vectors[i] = ((const uint8_t *)FOUND)[i];
}

/*
 * Every other page wholly. Of the others one word, another one in each: among the first and the
 * last of a page, because the code compares four parts of 64 bytes at a time.
 */
IN_SESSION static void
spoil_pages(uint64_t start, const uint64_t single[DIGESTED / SHAI_ROLLBACK_PAGE / 2])
{
	for (uint64_t offset = 0; offset < DIGESTED; offset += 8) {
		uint64_t page = offset / SHAI_ROLLBACK_PAGE;

		if (page % 2 == 0 || offset % SHAI_ROLLBACK_PAGE / 8 == single[page / 2])
			*(uint64_t *)(start + offset) = (uint64_t)sealed_evil;
	}
}

/* Everything that a session can write. */
IN_SESSION static void
spoil(void)
{
	static const uint64_t first[] = {0, 2, 4, 6}, last[] = {505, 507, 509, 511};

	spoil_pages(DATA, last);
	spoil_pages(STACK, first);
	for (int i = 0; i < 3; i++)
		(void)syscall(SYS_fcntl, CONNECTION, F_DUPFD, SHAI_ROLLBACK_OPENED + 50 * i);
}

IN_SESSION _Noreturn void
sealed_session(const uint64_t *found)
{
	static struct sealed_report report;
	static struct sealed_leave leave;
	static uint64_t frame[5] = {[1] = 0x33, [4] = 0x2b}; /* the selectors of user mode */

	look(&report, found);
	if (syscall(SYS_write, CONNECTION, &report, sizeof(report)) != sizeof(report) ||
	    syscall(SYS_read, CONNECTION, &leave, sizeof(leave)) != sizeof(leave))
		(void)syscall(SYS_exit_group, 1);
	spoil();
	frame[0] = SHAI_ROLLBACK_CODE + leave.offset;
	frame[2] = leave.flags;
	frame[3] = leave.registers[SEALED_RSP];
	sealed_leave(leave.registers, SPOILED_VECTORS, frame);
}

/* ------------------------------------------------------------ before it */

static uint64_t
enabled(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low | (uint64_t)high << 32;
}

/* Fills an XSAVE area with values of its own for each seed. The area is zero before. */
static void
fill_vectors(uint8_t *area, uint8_t seed)
{
	const struct {
		uint16_t control, status;
		uint8_t tags, reserved;
		uint16_t operation;
		uint64_t instruction, operand;
		uint32_t mxcsr;
	} head = {0x37f, 0x3800, 0xff, 0, seed, seed + 0x1000u, seed + 0x2000u, 0x1f80u | seed};
	uint64_t present = 0;

	memcpy(area, &head, 28);
	for (int i = 0; i < 8; i++) /* of 16 bytes 10 are used */
		memset(area + 32 + 16 * i, seed + i, 10);
	memset(area + 160, seed + 0x20, 256);
	for (size_t i = 0; i < COUNT(components); i++) {
		uint32_t size, offset, unused;

		if ((enabled() >> components[i] & 1) == 0)
			continue;
		present |= UINT64_C(1) << components[i];
		__cpuid_count(0xd, components[i], size, offset, unused, unused);
		if (components[i] == PROTECTION_KEYS)
			area[offset] = (uint8_t)(seed << 2); /* key 0 stays permitted */
		else if (components[i] > 1)
			memset(area + offset, seed + (int)i, size);
	}
	memcpy(area + 512, &present, sizeof(present));
}

/*
 * Some processors, and some hypervisors, keep nothing of x87's last instruction and operand: an
 * area has there what comes back, always the same.
 */
static void
keep_pointers(uint8_t *vectors)
{
	static uint8_t area[512 + 64] __attribute__((aligned(64)));

	memcpy(area, vectors, sizeof(area));
	__asm__ volatile("fninit; xrstor64 (%0); xsave64 (%0); fninit"
			 :
			 : "r"(area), "a"(1), "d"(0)
			 : "memory");
	memcpy(vectors + 6, area + 6, 18);
}

uint64_t
sealed_components(void)
{
	return enabled() & SEALED_COMPONENTS;
}

static void
map(uint64_t start, uint64_t size)
{
	if (mmap((void *)start, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)start)
		_exit(90);
}

static void
protect(uint64_t start, uint64_t size, int protection)
{
	if (mprotect((void *)start, size, protection) != 0)
		_exit(91);
}

/* What a region other than the first has at an offset. */
static uint64_t
content(uint64_t region, uint64_t offset)
{
	return offset * 3 + region;
}

static void
make_regions(void)
{
	for (size_t i = 0; i < COUNT(regions); i++) {
		map(regions[i].start, regions[i].size);
		if (regions[i].start == DATA || regions[i].start == STACK)
			for (uint64_t j = 0; j < regions[i].size; j += 8)
				*(uint64_t *)(regions[i].start + j) = content(i, j);
	}
	map(EVIL, EVIL_SIZE);
	for (uint64_t j = 0; j < EVIL_SIZE; j += 8)
		*(uint64_t *)(EVIL + j) = (uint64_t)sealed_evil;
	map(SPOILED_VECTORS, SHAI_ROLLBACK_VECTORS_SIZE);
	fill_vectors((uint8_t *)SPOILED_VECTORS, SPOILED_SEED);
}

static uint64_t
thread_of(void)
{
	uint64_t base;

	__asm__ volatile("rdfsbase %0" : "=r"(base));
	return base;
}

static void
make_state(void)
{
	struct shai_rollback_state *state = (void *)SHAI_ROLLBACK_STATE;
	uint64_t next = SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_SNAPSHOT;
	uint64_t size = SHAI_ROLLBACK_SNAPSHOT;

	for (size_t i = 0; i < COUNT(regions); i++)
		size += regions[i].size;
	map(SHAI_ROLLBACK_STATE, size);
	state->range_count = COUNT(regions);
	state->stack = STACK_POINTER;
	state->resume = (uint64_t)sealed_resume;
	state->thread = thread_of();
	fill_vectors((uint8_t *)SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_VECTORS, SEALED_SEED);
	for (size_t i = 0; i < COUNT(regions); i++) {
		state->range[i] =
		    (struct shai_rollback_range){regions[i].start, next, regions[i].size};
		if (regions[i].start != SEALED_UNTOUCHED)
			memcpy((void *)next, (void *)regions[i].start, regions[i].size);
		next += regions[i].size;
	}
	protect(SHAI_ROLLBACK_STATE, size, PROT_READ);
}

/*
 * What the monitor's filter does with accept4: only here, and with these arguments. A jump into
 * the gate could wait in recvfrom for ever.
 */
static int
install_filter(void)
{
#define WORD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(field))
#define EQUAL(value, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, otherwise)
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
	const uint64_t address = SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_ACCEPTED;
	struct sock_filter program[] = {
	    WORD(offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvfrom, 14, 0),
	    EQUAL(SYS_accept4, 14),
	    WORD(offsetof(struct seccomp_data, instruction_pointer)),
	    EQUAL(address, 11),
	    WORD(offsetof(struct seccomp_data, instruction_pointer) + 4),
	    EQUAL(address >> 32, 9),
	    WORD(ARGUMENT(0)),
	    EQUAL(SHAI_ROLLBACK_LISTEN, 7),
	    WORD(ARGUMENT(1)),
	    EQUAL(0, 5),
	    WORD(ARGUMENT(2)),
	    EQUAL(0, 3),
	    WORD(ARGUMENT(3)),
	    EQUAL(SOCK_CLOEXEC, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = COUNT(program), .filter = program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		_exit(92);
	return (int)syscall(
	    SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

_Noreturn void
sealed_work(const uint8_t code[SHAI_ROLLBACK_CODE_SIZE], int to)
{
	const struct rlimit none = {0, 0}, seconds = {5, 5};
	struct descriptors listener = {.count = 1};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)signal(SIGSEGV, SIG_DFL); /* cmocka would go on with its tests here */
	(void)signal(SIGILL, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setrlimit(RLIMIT_CORE, &none) != 0 ||
	    setrlimit(RLIMIT_CPU, &seconds) != 0)
		_exit(93);
	listener.number[0] = install_filter();
	if (listener.number[0] < 0 || packet_send(to, "listener", 8, &listener) != 0)
		_exit(94);
	for (int number = 3; number < SHAI_ROLLBACK_OPENED; number++)
		if (number != nothing)
			(void)dup2(nothing, number);
	map(SHAI_ROLLBACK_CODE, SHAI_ROLLBACK_CODE_SIZE);
	memcpy((void *)SHAI_ROLLBACK_CODE, code, SHAI_ROLLBACK_CODE_SIZE);
	protect(SHAI_ROLLBACK_CODE, SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_EXEC);
	make_regions();
	make_state();
	((void (*)(void))SHAI_ROLLBACK_CODE)();
	__builtin_unreachable();
}

void
sealed_expected(struct sealed_report *out)
{
	uint64_t sum = 0;

	memset(out, 0, sizeof(*out));
	out->registers[0] = CONNECTION;
	out->registers[SEALED_RSP] = STACK_POINTER;
	out->flags = 0x202; /* interrupts, and the bit that is always set */
	out->fs_base = thread_of();
	fill_vectors(out->vectors, SEALED_SEED);
	keep_pointers(out->vectors);
	for (uint64_t i = 1; i < 3; i++) /* data, stack */
		for (uint64_t j = 0; j < DIGESTED; j += 8)
			sum = (sum ^ content(i, j)) * DIGEST_PRIME;
	out->memory = sum;
}
