/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared_state.h"

#include <sys/systm.h>

#include <sys/fcntl.h>
#include <sys/filio.h>
#include <sys/signalvar.h>
#include <sys/sockio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ttycom.h>
#include <sys/umtx.h>
#ifdef __amd64__
#include <machine/sysarch.h>
#endif

#include "treatment.h"

#ifndef UMTX_OP_SET_MIN_TIMEOUT
#define UMTX_OP_SET_MIN_TIMEOUT 28 /* FreeBSD 15 */
#endif

#define NAME_TO_NUMBER_LENGTH                                                  \
	2 /* of the one variable that is written to be read */

/*
 * Clocks of the use of processors. The numbers below zero name a process or a
 * thread.
 */
static bool
counts_use(clockid_t clock)
{
	return (clock < 0 || clock == CLOCK_VIRTUAL || clock == CLOCK_PROF ||
		clock == CLOCK_THREAD_CPUTIME_ID ||
		clock == CLOCK_PROCESS_CPUTIME_ID);
}

/* Requests that make a file send signals to the process. */
static bool
sends_signals(u_long request)
{
	return (request == FIOASYNC || request == FIOSETOWN ||
		request == SIOCSPGRP || request == TIOCSPGRP ||
		request == TIOCSCTTY);
}

static bool
changes_machine(int operation)
{
#ifdef __amd64__
	return (operation == I386_SET_LDT || operation == I386_GET_LDT ||
		operation == I386_SET_IOPERM);
#else
	(void)operation;
	return (false);
#endif
}

/*
 * Reports whether a signal that the context sends to its own process would not
 * be delivered at once. It would stay pending, and reach another context.
 */
static bool
would_stay_pending(struct thread *td, pid_t receiver, int signal)
{
	if (!_SIG_VALID(signal) ||
	    (receiver > 0 && receiver != td->td_proc->p_pid))
		return (false);
	if (SIGISMEMBER(td->td_sigmask, signal))
		return (true);
	if ((td->td_pflags & TDP_SIGFASTBLOCK) == 0)
		return (false);
	sigfastblock_fetch(td);
	return (td->td_sigblock_val != 0);
}

bool
shared_state_call(struct thread *td, int number, const syscallarg_t *arguments)
{
	const pid_t self = td->td_proc->p_pid;

	switch (number) {
	case SYS_clock_gettime:
		return (counts_use((clockid_t)arguments[0]));
	case SYS_fcntl:
		return ((int)arguments[1] == F_SETOWN ||
			((int)arguments[1] == F_SETFL &&
			    (arguments[2] & O_ASYNC) != 0));
	case SYS_ioctl:
		return (sends_signals((u_long)arguments[1]));
	case SYS___sysctl:
		return (arguments[4] != 0 &&
			(u_int)arguments[1] != NAME_TO_NUMBER_LENGTH);
	case SYS___sysctlbyname:
		return (arguments[4] != 0);
	case SYS__umtx_op:
		return ((int)arguments[1] == UMTX_OP_SET_MIN_TIMEOUT);
	case SYS_sysarch:
		return (changes_machine((int)arguments[0]));
	case SYS_kill:
	case SYS_sigqueue:
		return (would_stay_pending(
		    td, (pid_t)arguments[0], (int)arguments[1]));
	case SYS_sigaction: /* the kernel asks the action who reaps children */
		return ((int)arguments[0] == SIGCHLD && arguments[1] != 0);
	case SYS_thr_kill:
		return (would_stay_pending(td, self, (int)arguments[1]));
	case SYS_thr_kill2:
		return (would_stay_pending(
		    td, (pid_t)arguments[0], (int)arguments[2]));
	default:
		return (treatment_of(number) == TREAT_SHARED);
	}
}
