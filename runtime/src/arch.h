/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Everything that depends on the processor: the gate's instructions and the call
 * through it.
 */
#ifndef SHAI_ARCH_H
#define SHAI_ARCH_H

#include "shai_wire.h"

#if defined(__linux__) && defined(__x86_64__) && !defined(__ILP32__)

/* syscall; ret */
#define SHAI_GATE_BYTES                                                                            \
	{                                                                                          \
		0x0f, 0x05, 0xc3                                                                   \
	}
#define SHAI_GATE_SYSCALL_SIZE 2

/*
 * shai_gate_call(number, a, b, c): moves the arguments to the registers that the
 * kernel expects and jumps to the gate, whose ret returns to our caller. It jumps
 * instead of calling, so that the gate runs in an ordinary frame and needs no
 * unwinding of its own.
 */
#define SHAI_GATE_CALL_ASSEMBLY                                                                    \
	".text\n"                                                                                  \
	".globl shai_gate_call\n"                                                                  \
	".hidden shai_gate_call\n"                                                                 \
	".type shai_gate_call, @function\n"                                                        \
	"shai_gate_call:\n"                                                                        \
	"	endbr64\n"                                                                               \
	"	movq %rdi, %rax\n"                                                                       \
	"	movq %rsi, %rdi\n"                                                                       \
	"	movq %rdx, %rsi\n"                                                                       \
	"	movq %rcx, %rdx\n"                                                                       \
	"	movabsq $0x200000000000, %r11\n"                                                         \
	"	jmpq *%r11\n"                                                                            \
	".size shai_gate_call, .-shai_gate_call\n"

_Static_assert(SHAI_GATE_ADDRESS == 0x200000000000ULL, "the assembly above names the address");

#else
#error "libshai's gate is written for x86-64 Linux. A port supplies here: the bytes of \
'system call; return', the size of the first instruction, a shai_gate_call with the \
kernel's calling convention, and in shai_wire.h this architecture's SHAI_GATE_RETURN \
(for aarch64: svc #0; ret, four bytes each)."
#endif

_Static_assert(SHAI_GATE_ADDRESS + SHAI_GATE_SYSCALL_SIZE == SHAI_GATE_RETURN,
    "the filter compares with the address after the system call instruction");

#endif
