/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How a worker asks for its seal, a part of the page of the roll-back code: a function
 *
 *	int64_t seal(const struct sock_fprog *filter)
 *
 * which returns the error of seccomp, or does not return. The monitor agrees only if the call
 * comes from here. Interval timers, which nobody sees from outside, would count over all
 * sessions and end one. So they are stopped as soon as nothing can set them any more: between
 * the call and accept4 nothing runs but this code. A session that jumps here has no timers to
 * stop, and can set none.
 */
#define SET_MODE_FILTER 1 /* SECCOMP_SET_MODE_FILTER */
#define LAST_TIMER 2      /* ITIMER_PROF, after ITIMER_REAL and ITIMER_VIRTUAL */

	.org	rollback_code + SHAI_ROLLBACK_SEAL, 0xcc
	mov	%rdi, %rdx
	mov	$SET_MODE_FILTER, %edi
	xor	%esi, %esi
	mov	$__NR_seccomp, %eax
	.org	rollback_code + SHAI_ROLLBACK_SEALED - 2, 0x90
	syscall
	test	%rax, %rax
	jz	.Lsealed
	ret

.Lsealed:
	mov	$LAST_TIMER, %edi
	lea	.Lstopped(%rip), %rsi
	xor	%edx, %edx
.Lstop:
	mov	$__NR_setitimer, %eax
	syscall
	test	%rax, %rax
	jnz	.Lend
	dec	%edi
	jns	.Lstop
	jmp	.Laccept

	.org	rollback_code + SHAI_ROLLBACK_STOPPED, 0xcc
.Lstopped: /* struct itimerval */
	.zero	32
