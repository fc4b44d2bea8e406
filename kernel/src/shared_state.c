/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared_state.h"

#include <sys/systm.h>

#include <sys/fcntl.h>
#include <sys/filio.h>
#include <sys/mman.h>
#include <sys/signalvar.h>
#include <sys/sockio.h>
#include <sys/syscall.h>
#include <sys/sysctl.h>
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

#define FREEBSD4_SIGACTION 342 /* its name is not in the header */

/* The one variable of sysctl(3) that is written to be read. */
static const int name_to_number[] = {CTL_SYSCTL, CTL_SYSCTL_NAME2OID};
#define NAME_TO_NUMBER_LENGTH nitems(name_to_number)

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

/*
 * Requests that make a file send signals to the process. The kernel takes the
 * lower half of a request.
 */
static bool
sends_signals(uint32_t request)
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

static bool
changes_variable(const syscallarg_t *arguments)
{
	int name[NAME_TO_NUMBER_LENGTH];

	if (arguments[4] == 0)
		return (false);
	return ((u_int)arguments[1] != NAME_TO_NUMBER_LENGTH ||
		copyin((const void *)arguments[0], name, sizeof(name)) != 0 ||
		memcmp(name, name_to_number, sizeof(name)) != 0);
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
		return (sends_signals((uint32_t)arguments[1]));
	case SYS_msync: /* mincore(2) of others would tell */
		return (((int)arguments[2] & MS_INVALIDATE) != 0);
	case SYS___sysctl:
		return (changes_variable(arguments));
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
	case FREEBSD4_SIGACTION:
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

bool
shared_state_is_name_to_number(int number, const syscallarg_t *arguments)
{
	return (number == SYS___sysctl && arguments[4] != 0);
}

int
shared_state_name_to_number(struct thread *td, const syscallarg_t *arguments)
{
	int name[NAME_TO_NUMBER_LENGTH], error, copied;
	size_t length;

	memcpy(name, name_to_number, sizeof(name));
	error = userland_sysctl(td, name, nitems(name), (void *)arguments[2],
	    (size_t *)arguments[3], 0, (const void *)arguments[4],
	    (size_t)arguments[5], &length, 0);
	if ((error != 0 && error != ENOMEM) || arguments[3] == 0)
		return (error);
	copied = copyout(&length, (void *)arguments[3], sizeof(length));
	return (copied != 0 ? copied : error);
}
