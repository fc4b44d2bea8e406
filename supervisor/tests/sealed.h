/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker that is sealed with the roll-back code and nothing else: without a supervisor, libshai
 * and a monitor. In each session it reports what it finds, then spoils what it can write, and
 * jumps into the code as it is told.
 */
#ifndef SUPERVISOR_TESTS_SEALED_H
#define SUPERVISOR_TESTS_SEALED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shai_rollback.h"

#define SEALED_REGISTERS 16 /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15 */
#define SEALED_RSP 4

/* What a session finds when it begins. */
struct sealed_report {
	uint64_t registers[SEALED_REGISTERS];
	uint64_t flags;
	uint64_t fs_base, gs_base;
	uint64_t selectors[4]; /* ds, es, fs, gs */
	uint64_t memory;       /* digest of all ranges */
	uint64_t opened;       /* how many descriptors are open that are not reserved */
	uint8_t vectors[SHAI_ROLLBACK_VECTORS_SIZE];
};

/* ID, AC, NT, OF, DF, IF, SF, ZF, AF, PF, CF, and the bit that is always set. */
#define SEALED_FLAGS UINT64_C(0x244ed7)
#define SEALED_TRAP UINT64_C(0x100)

/* How a session leaves: it jumps to an offset in the code, with these registers and flags. */
struct sealed_leave {
	uint64_t offset;
	uint64_t flags;
	uint64_t registers[SEALED_REGISTERS];
};

struct sealed {
	pid_t pid;
	int process; /* pidfd */
	int listener;
};

/* Starts a worker with this code, or one of a patched copy. */
void sealed_start(struct sealed *worker, const uint8_t code[SHAI_ROLLBACK_CODE_SIZE]);
void sealed_stop(struct sealed *worker);

enum sealed_sign {
	SEALED_WAITS, /* in accept4 */
	SEALED_SAYS,  /* something on the connection */
	SEALED_ENDED  /* its process, or the connection */
};

/* Waits for the next sign of a worker, or of its connection if that is not -1. */
enum sealed_sign sealed_await(const struct sealed *worker, int connection);

/* Answers the accept4 that it waits in: with a connection, whose other end it returns. */
int sealed_connect(const struct sealed *worker);

/* Answers it with an error. */
void sealed_refuse(const struct sealed *worker, int error);

/* Closes the listener: nobody answers the worker any more. */
void sealed_forsake(struct sealed *worker);

/* What every session is to find. */
void sealed_expected(struct sealed_report *out);

/* Receives a report. Returns NULL, or what is not as expected. */
const char *sealed_check(int connection, const struct sealed_report *expected);

/* An address that writes "EVIL" to the connection and exits; memory that has it everywhere. */
extern const char sealed_evil[];
#define SEALED_EVIL_MEMORY UINT64_C(0x300000410000)

/* Where memory begins that is restored, and that nobody writes. */
#define SEALED_UNTOUCHED UINT64_C(0x300000300000)

/* Returns how much memory of its own the worker has in the mapping that begins there, in KiB. */
int sealed_memory_at(const struct sealed *worker, uint64_t start);

/* The components of an XSAVE area that are compared, as far as the processor has them. */
#define SEALED_COMPONENTS UINT64_C(0x2e7) /* x87, SSE, AVX, AVX-512, protection keys */
uint64_t sealed_components(void);

/* What the worker's process executes; to is where its listener goes. */
_Noreturn void sealed_work(const uint8_t code[SHAI_ROLLBACK_CODE_SIZE], int to);

#endif
