/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The roll-back code: one page, at SHAI_ROLLBACK_CODE in every sealed worker, that nobody can
 * change. The session before may jump to any byte of it, with registers and memory of its
 * choice. So accept4 comes first, which ends that session: the supervisor gives the worker
 * another connection only when it answers this call, whose address the worker's filter compares.
 * What follows uses constants, the state and the call's result, and of what a session could write
 * only whether it is equal to the state. Whoever jumps behind the call is still in the session
 * that it was in.
 *
 * The error EAGAIN of accept4 rolls back, too, and calls it again. With any other the worker
 * ends: there is nobody left who could give it a session.
 */
#include <asm/errno.h>
#include <asm/unistd.h>

#include "shai_rollback.h"

#define ACCEPT_FLAGS 0x80000 /* SOCK_CLOEXEC */
#define SSE 2                /* of the components of an XSAVE area */
#define FLAGS 2              /* RFLAGS: all clear; bit 1 is always set */
#define STATE(offset) .Laccept + SHAI_ROLLBACK_STATE - SHAI_ROLLBACK_CODE + (offset)(%rip)

	.section .rodata.rollback_code, "a"
	.balign 16
	.globl rollback_code
rollback_code:
.Laccept:
	mov	$__NR_accept4, %eax
	mov	$SHAI_ROLLBACK_LISTEN, %edi
	xor	%esi, %esi
	xor	%edx, %edx
	mov	$ACCEPT_FLAGS, %r10d
	.org	rollback_code + SHAI_ROLLBACK_ACCEPTED - 2, 0x90
	syscall
	mov	%rax, %r15

	/*
	 * Vector registers, x87, MXCSR, protection keys. Some processors leave x87's last
	 * instruction and operand as they are in xrstor; fninit clears them.
	 */
	fninit
	mov	$-1, %eax
	mov	$-1, %edx
	xrstor64 STATE(SHAI_ROLLBACK_VECTORS)

	/*
	 * Memory. A page is copied if it differs from its copy: what no session has written is
	 * still the zygote's, and shared with all its workers.
	 */
	cld
	mov	STATE(SHAI_ROLLBACK_RANGE_COUNT), %r13
	lea	STATE(SHAI_ROLLBACK_RANGES), %r14
	jmp	.Lnext
.Lrange:
	mov	0(%r14), %rdi
	mov	8(%r14), %rsi
	mov	16(%r14), %rdx
	lea	(%rdi,%rdx), %rdx /* the end */
.Lpage:
	mov	$SHAI_ROLLBACK_PAGE / 64, %ecx
.Lcompare:
	.irp	part, 0, 1, 2, 3
	movdqa	16 * \part(%rsi), %xmm\part
	pcmpeqd	16 * \part(%rdi), %xmm\part
	.endr
	pand	%xmm1, %xmm0
	pand	%xmm3, %xmm2
	pand	%xmm2, %xmm0
	pmovmskb %xmm0, %eax
	cmp	$0xffff, %eax
	jne	.Ldiffers
	add	$64, %rsi
	add	$64, %rdi
	dec	%ecx
	jnz	.Lcompare
	jmp	.Lsame
.Ldiffers:
	shl	$3, %ecx /* the words from these on */
	rep movsq
.Lsame:
	cmp	%rdx, %rdi
	jb	.Lpage
	add	$SHAI_ROLLBACK_RANGE_SIZE, %r14
.Lnext:
	dec	%r13
	jns	.Lrange
	mov	$SSE, %eax
	xor	%edx, %edx
	xrstor64 STATE(SHAI_ROLLBACK_VECTORS) /* XMM registers, again */

	/* Descriptors. */
	mov	$__NR_close_range, %eax
	mov	$SHAI_ROLLBACK_OPENED, %edi
	mov	$-1, %esi
	xor	%edx, %edx
	syscall
	test	%rax, %rax
	jz	.Lclosed
.Lend:
	mov	$__NR_exit_group, %eax
	mov	$1, %edi
	syscall
	ud2

	/* Segments. Selectors come first, because loading one may change its base. */
.Lclosed:
	xor	%eax, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %fs
	mov	%eax, %gs
	wrgsbase %rax
	mov	STATE(SHAI_ROLLBACK_THREAD), %rax
	wrfsbase %rax

	/* Flags, from a constant: nothing is written below the worker's stack. */
	lea	.Lflags(%rip), %rsp
	popfq

	/* All other registers. */
	mov	STATE(SHAI_ROLLBACK_STACK), %rsp
	mov	%r15, %rax
	xor	%ebx, %ebx
	xor	%ecx, %ecx
	xor	%edx, %edx
	xor	%esi, %esi
	xor	%edi, %edi
	xor	%ebp, %ebp
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	xor	%r10d, %r10d
	xor	%r11d, %r11d
	xor	%r12d, %r12d
	xor	%r13d, %r13d
	xor	%r14d, %r14d
	xor	%r15d, %r15d
	test	%rax, %rax
	js	.Lerror
	jmp	*STATE(SHAI_ROLLBACK_RESUME)

.Lerror:
	cmp	$-EAGAIN, %rax
	je	.Laccept
	jmp	.Lend

	.balign 8, 0xcc
.Lflags:
	.quad	FLAGS

#include "seal_code.S"

#include "gate_code.S"

	.org	rollback_code + SHAI_ROLLBACK_CODE_SIZE, 0xcc /* int3: the worker dies */

	.section .note.GNU-stack, "", @progbits
