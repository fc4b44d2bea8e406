/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The gate (shai_gate.h), a part of the page of the roll-back code.
 *
 * The session may jump to any byte of it, with registers, flags and memory of its choice. The
 * worker's filter allows a receive from a channel at one instruction only, into the buffer, and
 * so all that is received is checked by what follows: a worker has one thread, handles no
 * signals, and nobody else writes to its memory. From there to the end nothing depends on what
 * a session could change, but which query it waits for. A call of the gate leaves nothing but
 * its result in the registers that it uses.
 */
#include <asm/errno.h>
#include <asm/unistd.h>

#include "shai_gate.h"

#define DONT_WAIT 0x40                     /* MSG_DONTWAIT */
#define SEND_FLAGS (DONT_WAIT | 0x4000)    /* MSG_NOSIGNAL */
#define HEAD 8                             /* of a transfer: query, reserved */
#define IN_PAGE(address) .Laccept + (address) - SHAI_ROLLBACK_CODE
#define BUFFER(offset) IN_PAGE(SHAI_GATE_BUFFER) + (offset)(%rip)
#define RECORD(offset) BUFFER(SHAI_GATE_RECORD + (offset))
#define GRANT(offset) IN_PAGE(SHAI_GATE_GRANT) + (offset)(%rip)

	.org	rollback_code + SHAI_GATE, 0xcc
	mov	%esi, %r9d /* the query: without an address, recvfrom has no sixth argument */
	lea	RECORD(0), %rsi
	mov	$SHAI_GATE_RECORD_MAX + 1, %edx /* so that a longer record is noticed */
	mov	$DONT_WAIT, %r10d
	xor	%r8d, %r8d
	mov	$__NR_recvfrom, %eax
	.org	rollback_code + SHAI_GATE_RECEIVED - 2, 0x90
	syscall
	cld
	test	%rax, %rax
	jle	.Lgate_clear
	mov	%rax, %rdx
	mov	$-EAGAIN, %rax
	mov	GRANT(SHAI_GRANT_FLAGS), %r10d
	test	$SHAI_GRANT_BOUND, %r10d
	jz	.Lgate_clear

	/* Its form, as channel_check (channels.c) has it. */
	cmp	$HEAD, %edx
	jb	.Lgate_forward
	cmp	$SHAI_GATE_RECORD_MAX, %edx
	ja	.Lgate_forward
	test	$3, %dl
	jnz	.Lgate_forward
	cmpl	$0, RECORD(4)
	jne	.Lgate_forward

	cmp	RECORD(0), %r9d
	jne	.Lgate_clear
	test	$SHAI_GRANT_UNCHECKED, %r10d
	jnz	.Lgate_pass

	/* Its numbers: 0, or of a class that the grant has. */
	lea	RECORD(0), %rsi
	movabs	$SHAI_GATE_CLASSES, %rdi
	mov	$HEAD, %ecx
.Lgate_number:
	cmp	%edx, %ecx
	jae	.Lgate_pass
	mov	(%rsi,%rcx), %eax
	add	$4, %ecx
	test	%eax, %eax
	jz	.Lgate_number
	cmp	GRANT(SHAI_GRANT_CONDUIT_COUNT), %eax
	jae	.Lgate_forward
	mov	(%rdi,%rax,4), %eax
	test	%eax, %eax
	jz	.Lgate_forward
	lea	GRANT(SHAI_GRANT_CLASSES), %r8
	mov	GRANT(SHAI_GRANT_CLASS_COUNT), %r10d
.Lgate_half: /* is it one of the r10 classes from r8 on? */
	test	%r10d, %r10d
	jz	.Lgate_forward
	mov	%r10d, %r11d
	shr	%r11d
	cmp	(%r8,%r11,4), %eax
	je	.Lgate_number
	ja	.Lgate_upper
	mov	%r11d, %r10d
	jmp	.Lgate_half
.Lgate_upper:
	lea	4(%r8,%r11,4), %r8
	not	%r11d
	add	%r11d, %r10d
	jmp	.Lgate_half

.Lgate_forward:
	lea	BUFFER(0), %rsi
	add	$SHAI_GATE_RECORD, %edx
	movl	$SHAI_GATE_HEAD, 0(%rsi)
	mov	%edx, 4(%rsi)
	movq	$0, 8(%rsi)
	mov	$SHAI_GATE_SUPERVISOR, %edi
	mov	$SEND_FLAGS, %r10d
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	mov	$__NR_sendto, %eax
	syscall
	test	%rax, %rax
	js	.Lgate_clear
	mov	$-EINPROGRESS, %rax

.Lgate_clear: /* the buffer; rax is the result */
	mov	%rax, %rdx
	lea	BUFFER(0), %rdi
	mov	$(SHAI_GATE_RECORD + SHAI_GATE_RECORD_MAX) / 8 + 1, %ecx
	xor	%eax, %eax
	rep stosq
.Lgate_pass: /* rdx is the result */
	mov	%rdx, %rax
	xor	%ecx, %ecx
	xor	%edx, %edx
	xor	%esi, %esi
	xor	%edi, %edi
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	xor	%r10d, %r10d
	xor	%r11d, %r11d
	ret
