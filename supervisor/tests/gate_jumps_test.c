/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A session jumps to each byte of the page with the roll-back code and the gate, while a record
 * of some kind waits in its channel, with registers of some kinds. Whatever it executes then,
 * when it executes its own code again it finds nothing of the record in registers or memory.
 *
 * A child process is the session. Its filter permits what a worker's permits of the channel. A
 * worker dies of each signal, so the handler here stands for its death: what the registers and
 * the memory are then is not looked at.
 */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "gate_room.h"
#include "shai_rollback.h"

#define QUERY 77u
#define CLASS 500u
#define SECRET 0x5c5cu /* the session must not see two such bytes in a row */
#define WORD 0x5c5c5c5cu
#define OWN 200 /* descriptors from here on are the test's, not the session's */
#define SCRATCH_SIZE 8192

static struct gate_room room;
static uint8_t *scratch; /* all that the session can write beside the buffer */

/* ------------------------------------------------------------ the records */

static const struct kind {
	const char *name;
	struct shai_transfer record;
	size_t length;
	uint32_t class; /* that the session has beside CLASS */
	bool closed;    /* the session has no user */
	bool visible;   /* the session may see it */
} kinds[] = {
    {.name = "none"},
    {"permitted", {QUERY, 0, {2, SECRET}}, 16, CLASS + 2, false, true},
    {"of another class", {QUERY, 0, {2, SECRET}}, 16, 0, false, false},
    {"unknown", {QUERY, 0, {2, WORD}}, 16, 0, false, false},
    {"of another query", {WORD, 0, {2}}, 12, 0, false, false},
    {"reserved", {QUERY, WORD, {2}}, 12, 0, false, false},
    {"a fraction", {QUERY, 0, {2, WORD}}, 15, 0, false, false},
    {"short", {WORD, 0, {0}}, 3, 0, false, false},
    {"long", {QUERY, 0, {[0 ... SHAI_BATCH_MAX - 1] = WORD}}, sizeof(struct shai_transfer) + 1, 0,
	false, false},
    {"without a user", {QUERY, 0, {2, SECRET}}, 16, CLASS + 2, true, false},
};

/* --------------------------------------------------------------- the jump */

enum {
	RAX,
	RBX,
	RCX,
	RDX,
	RSI,
	RDI,
	RBP,
	R8,
	R9,
	R10,
	R11,
	R12,
	R13,
	R14,
	R15,
	RSP,
	REGISTERS
};

/* Used by assembly. */
uint64_t jump_flags, jump_target, jump_stack, jump_thread;
uint64_t jump_begin[REGISTERS], jump_end[REGISTERS];
uint8_t jump_vectors[512] __attribute__((aligned(64)));

#define EACH(operation)                                                                            \
	operation(rax, 0) operation(rbx, 8) operation(rcx, 16) operation(rdx, 24)                  \
	    operation(rsi, 32) operation(rdi, 40) operation(rbp, 48) operation(r8, 56)             \
		operation(r9, 64) operation(r10, 72) operation(r11, 80) operation(r12, 88)         \
		    operation(r13, 96) operation(r14, 104) operation(r15, 112) operation(rsp, 120)
#define LOAD(name, offset) "mov jump_begin+" #offset "(%rip), %" #name "\n\t"
#define KEEP(name, offset) "mov %" #name ", jump_end+" #offset "(%rip)\n\t"

/*
 * Loads flags and registers, and jumps to the target. Returns when something jumps to the
 * landing; the roll-back code has perhaps set another thread then.
 */
void jump(void);
void jump_landing(void);
__asm__(".text\n"
	"jump:\n\t"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t"
	"mov %rsp, jump_stack(%rip)\n\t"
	"push jump_flags(%rip)\n\t"
	"popfq\n\t" EACH(
	    LOAD) "jmp *jump_target(%rip)\n"
		  "jump_landing:\n\t" EACH(
		      KEEP) "mov jump_thread(%rip), %rax\n\t"
			    "wrfsbase %rax\n\t"
			    "fxsave64 jump_vectors(%rip)\n\t"
			    "mov jump_stack(%rip), %rsp\n\t"
			    "push $2; popfq\n\t"
			    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n\t"
			    "ret");

static sigjmp_buf death;
static volatile sig_atomic_t jumping;

/*
 * A popf of an address may have set the flag of alignment checks. The kernel keeps that for a
 * handler, where the C library's first unaligned access would be a SIGBUS within a SIGBUS.
 */
void handler(int number), die(int number);
__asm__("handler: push $2; popfq; jmp die");

/* Without the thread there is no stack protector's word. */
__attribute__((no_stack_protector)) void
die(int number)
{
	__asm__ volatile("wrfsbase %0" : : "r"(jump_thread));
	if (!jumping && number == SIGVTALRM)
		return;
	if (!jumping)
		_exit(13);
	jumping = false;
	siglongjmp(death, 1);
}

/* ---------------------------------------------------------- the registers */

enum fill {
	ZEROS,
	POINTERS,
	RECEIVING,
	STACK_IN_BUFFER,
	STACK_IN_RECORD,
	FILLS
};

/* Each place that a ret may look at leads to the landing. */
static void
fill_stack(void *start, size_t size)
{
	uint64_t *place = start;

	for (size_t i = 0; i < size / sizeof(*place); i++)
		place[i] = (uint64_t)(uintptr_t)jump_landing;
}

static void
fill_registers(enum fill fill)
{
	const uint64_t middle = (uint64_t)(uintptr_t)&scratch[SCRATCH_SIZE / 2];

	for (int i = 0; i < REGISTERS; i++)
		jump_begin[i] = fill == ZEROS ? 0 : middle;
	jump_begin[RSP] = middle;
	jump_flags = 2;
	memset((void *)SHAI_GATE_BUFFER, 0, SHAI_GATE_BUFFER_SIZE);
	fill_stack(scratch, SCRATCH_SIZE);
	if (fill < RECEIVING)
		return;
	/* Those with which the gate calls recvfrom, but for the direction flag. */
	jump_begin[RAX] = SYS_recvfrom;
	jump_begin[RDI] = SHAI_FD_CHANNEL;
	jump_begin[RSI] = SHAI_GATE_BUFFER + SHAI_GATE_RECORD;
	jump_begin[RDX] = SHAI_GATE_RECORD_MAX + 1;
	jump_begin[R10] = MSG_DONTWAIT;
	jump_begin[R8] = 0;
	jump_begin[R9] = QUERY;
	jump_flags |= 1u << 10;
	if (fill == STACK_IN_BUFFER)
		fill_stack((uint8_t *)SHAI_GATE_BUFFER + 1024, 1024);
	if (fill == STACK_IN_BUFFER)
		jump_begin[RSP] = SHAI_GATE_BUFFER + 1536;
	if (fill == STACK_IN_RECORD)
		jump_begin[RSP] = SHAI_GATE_BUFFER + SHAI_GATE_RECORD + 8;
}

/* ------------------------------------------------------------ the session */

#define LOAD_WORD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(field))
#define LOAD_ARGUMENT(index) LOAD_WORD(offsetof(struct seccomp_data, args[index]))
#define LOAD_UPPER(index) LOAD_WORD(offsetof(struct seccomp_data, args[index]) + 4)
#define IS(value, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, otherwise)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* The rules of a worker's filter for what reads the channel, and what this test needs. */
static void
install_filter(void)
{
	const uint64_t pointer = SHAI_ROLLBACK_CODE + SHAI_GATE_RECEIVED;
	const uint64_t record = SHAI_GATE_BUFFER + SHAI_GATE_RECORD;
	struct sock_filter program[] = {
	    LOAD_WORD(offsetof(struct seccomp_data, nr)),
	    /* The test's own. */
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 28, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 27, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 26, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 2),
	    LOAD_ARGUMENT(0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 23, 22),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_recvfrom, 0, 21),
	    LOAD_ARGUMENT(0),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OWN, 20, 0),
	    /* The gate's. */
	    IS(SHAI_FD_CHANNEL, 18),
	    LOAD_WORD(offsetof(struct seccomp_data, instruction_pointer)),
	    IS(pointer, 16),
	    LOAD_WORD(offsetof(struct seccomp_data, instruction_pointer) + 4),
	    IS(pointer >> 32, 14),
	    LOAD_ARGUMENT(1),
	    IS(record, 12),
	    LOAD_UPPER(1),
	    IS(record >> 32, 10),
	    LOAD_ARGUMENT(2),
	    IS(SHAI_GATE_RECORD_MAX + 1, 8),
	    LOAD_UPPER(2),
	    IS(0, 6),
	    LOAD_ARGUMENT(3),
	    IS(MSG_DONTWAIT, 4),
	    LOAD_ARGUMENT(4),
	    IS(0, 2),
	    LOAD_UPPER(4),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
	    REFUSE,
	    ALLOW,
	};
	struct sock_fprog head = {sizeof(program) / sizeof(program[0]), program};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &head) != 0)
		_exit(10);
}

static bool
has_secret(const void *start, size_t size)
{
	const uint8_t *byte = start;

	for (size_t i = 0; i + 1 < size; i++)
		if (byte[i] == (SECRET & 0xff) && byte[i + 1] == SECRET >> 8)
			return true;
	return false;
}

static bool
sees_secret(void)
{
	return has_secret(jump_end, sizeof(jump_end)) ||
	       has_secret(jump_vectors, sizeof(jump_vectors)) ||
	       has_secret((const void *)SHAI_GATE_BUFFER, SHAI_GATE_BUFFER_SIZE) ||
	       has_secret(scratch, SCRATCH_SIZE);
}

struct result {
	uint32_t tried, landed, seen; /* how many */
	uint32_t offset, kind, fill;  /* of the first that saw what it must not */
	uint32_t leaks;
};

/* What waits in the channel, and at the supervisor, is gone. */
static void
drain(int reader)
{
	uint8_t record[512];

	while (recv(reader, record, sizeof(record), MSG_DONTWAIT) >= 0)
		;
	while (recv(room.supervisor, record, sizeof(record), MSG_DONTWAIT) >= 0)
		;
}

static void
attempt(struct result *result, uint32_t offset, uint32_t k, enum fill fill, int reader)
{
	const struct kind *kind = &kinds[k];

	fill_registers(fill);
	memset(jump_end, 0, sizeof(jump_end));
	if (kind->length > 0 && send(room.channel, &kind->record, kind->length, 0) < 0)
		_exit(11);
	jump_target = SHAI_ROLLBACK_CODE + offset;
	if (offset == SHAI_GATE && fill >= RECEIVING)
		jump_begin[RSI] = QUERY;
	result->tried++;
	if (sigsetjmp(death, 1) == 0) {
		jumping = true;
		jump();
		jumping = false;
		result->landed++;
		if (sees_secret() && kind->visible) {
			result->seen++;
		} else if (sees_secret() && result->leaks++ == 0) {
			result->offset = offset;
			result->kind = k;
			result->fill = fill;
		}
	}
	drain(reader);
}

static void
handle_signals(void)
{
	static uint8_t stack[64 << 10];
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGVTALRM, SIGSYS};
	const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
	/* A jump into a loop ends, too. */
	const struct itimerval timer = {{0, 100000}, {0, 100000}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	if (sigaltstack(&alternate, NULL) != 0 || setitimer(ITIMER_VIRTUAL, &timer, NULL) != 0)
		_exit(12);
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (sigaction(numbers[i], &action, NULL) != 0)
			_exit(12);
}

__attribute__((noreturn)) static void
play_session(struct result *result)
{
	int reader = (int)syscall(SYS_fcntl, SHAI_FD_CHANNEL, F_DUPFD_CLOEXEC, OWN);
	uint32_t classes[2] = {CLASS};

	room.channel = (int)syscall(SYS_fcntl, room.channel, F_DUPFD_CLOEXEC, OWN);
	room.supervisor = (int)syscall(SYS_fcntl, room.supervisor, F_DUPFD_CLOEXEC, OWN);
	room.classes[SECRET] = CLASS + 2;
	/* What is before and after it is not there, so that no loop runs into the test's memory. */
	scratch = mmap(NULL, 3 * SCRATCH_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	scratch += SCRATCH_SIZE;
	if (mprotect(scratch, SCRATCH_SIZE, PROT_READ | PROT_WRITE) != 0)
		_exit(9);
	__asm__ volatile("rdfsbase %0" : "=r"(jump_thread));
	handle_signals();
	install_filter();
	for (uint32_t k = 0; k < COUNT(kinds); k++) {
		classes[1] = kinds[k].class;
		gate_open(room.grant, 0, GATE_ROOM_CONDUITS, classes, kinds[k].class == 0 ? 1 : 2);
		if (kinds[k].closed)
			gate_shut(room.grant);
		for (uint32_t offset = 0; offset < SHAI_ROLLBACK_CODE_SIZE; offset++)
			for (enum fill fill = 0; fill < FILLS; fill++)
				attempt(result, offset, k, fill, reader);
	}
	_exit(0);
}

static void
no_jump_shows_an_unchecked_byte(void **state)
{
	struct result *result =
	    mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	(void)state;
	gate_room_open(&room, CLASS);
	child = fork();
	if (child == 0)
		play_session(result);
	assert_int_equal(waitpid(child, &status, 0), child);
	print_message("%u jumps, %u came back, %u saw what they may\n", result->tried,
	    result->landed, result->seen);
	assert_int_equal(status, 0);
	if (result->leaks > 0)
		fail_msg(
		    "%u jumps, the first to %#x with registers %u, see of a record that is: %s",
		    result->leaks, result->offset, result->fill, kinds[result->kind].name);
	assert_int_equal(result->tried, COUNT(kinds) * (uint32_t)FILLS * SHAI_ROLLBACK_CODE_SIZE);
	/* A jump to the gate's beginning, and others, receive and see what is permitted. */
	assert_true(result->seen > 10);
	gate_room_close(&room);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_jump_shows_an_unchecked_byte),
	};

	return cmocka_run_group_tests_name("jumps into the gate", tests, NULL, NULL);
}
