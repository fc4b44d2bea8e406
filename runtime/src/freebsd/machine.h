/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A system call in the registers that a signal has saved: its arguments and its
 * result. Everything that depends on the processor is here.
 */
#ifndef SHAI_MACHINE_H
#define SHAI_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "refused_call.h"

#if defined(__x86_64__)

#define SHAI_CARRY_FLAG 0x1

/*
 * Gets the arguments of a call that has failed with error. Returns false if they are
 * lost.
 */
static inline bool
shai_machine_arguments(
    const ucontext_t *context, int number, int error, uint64_t arguments[SHAI_CALL_ARGUMENTS])
{
	const mcontext_t *registers = &context->uc_mcontext;

	(void)number, (void)error;
	arguments[0] = (uint64_t)registers->mc_rdi;
	arguments[1] = (uint64_t)registers->mc_rsi;
	arguments[2] = (uint64_t)registers->mc_rdx;
	arguments[3] = (uint64_t)registers->mc_rcx; /* the kernel moves r10 here */
	arguments[4] = (uint64_t)registers->mc_r8;
	arguments[5] = (uint64_t)registers->mc_r9;
	return true;
}

/* Makes the call return a result or, if that is -1, fail with error. */
static inline void
shai_machine_return(ucontext_t *context, long result, int error)
{
	mcontext_t *registers = &context->uc_mcontext;

	registers->mc_rax = result == -1 ? error : result;
	if (result == -1)
		registers->mc_rflags |= SHAI_CARRY_FLAG;
	else
		registers->mc_rflags &= ~(register_t)SHAI_CARRY_FLAG;
}

#elif defined(__aarch64__)

#define SHAI_CARRY_FLAG 0x20000000UL

/*
 * The error has overwritten the first argument's register. For calls relative to a
 * directory the error replaces it: ECAPMODE occurs with AT_FDCWD only, and after
 * ENOTCAPABLE an absolute path needs no directory. All other calls stay refused.
 */
static inline bool
shai_machine_arguments(
    const ucontext_t *context, int number, int error, uint64_t arguments[SHAI_CALL_ARGUMENTS])
{
	const __register_t *registers = context->uc_mcontext.mc_gpregs.gp_x;

	arguments[0] = (uint64_t)(int64_t)AT_FDCWD;
	for (int i = 1; i < SHAI_CALL_ARGUMENTS; i++)
		arguments[i] = (uint64_t)registers[i];
	if (number != SYS_openat && number != SYS_fstatat && number != SYS_faccessat)
		return false;
	return error == ECAPMODE || *(const char *)(uintptr_t)arguments[1] == '/';
}

static inline void
shai_machine_return(ucontext_t *context, long result, int error)
{
	struct gpregs *registers = &context->uc_mcontext.mc_gpregs;

	registers->gp_x[0] = result == -1 ? error : result;
	if (result == -1)
		registers->gp_spsr |= SHAI_CARRY_FLAG;
	else
		registers->gp_spsr &= ~SHAI_CARRY_FLAG;
}

#else
#error "libshai on FreeBSD is written for amd64 and arm64"
#endif

#endif
