/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Redirection of system calls, without changes to the kernel's table.
 *
 * Every call of a process with contexts comes to dispatch() below (vectors.c). It does
 * what the kernel would have done, with the kernel's own table at that moment (modules
 * add calls to it). A call goes to the context's monitor instead if the context has one,
 * and the call is in the context's set or is refused. Calls that contexts do not support
 * fail. A call that fails with ECAPMODE or ENOTCAPABLE has had no effect, so it can still
 * be redirected.
 *
 * A forked child starts with its parent's vector. Therefore the parent gets its original
 * vector back for the duration of the call. It has only one thread, so nothing else can
 * happen in the meantime.
 */
#include "context.h"

#include <sys/capsicum.h>
#include <sys/syscall.h>
#include <sys/unistd.h>

#include "compat.h"
#include "deliver.h"

enum treatment {
	TREAT_NATIVE = 0,
	TREAT_FORK,    /* makes a process */
	TREAT_EXECUTE, /* replaces the process's image */
	TREAT_REFUSE,  /* EOPNOTSUPP: threads, asynchronous I/O, jails */
	TREAT_OWN      /* the thread's own state: not on behalf of another context */
};

static const uint8_t treatment[SYS_MAXSYSCALL] = {
    [SYS_fork] = TREAT_FORK,
    [SYS_vfork] = TREAT_FORK,
    [SYS_rfork] = TREAT_FORK,
    [SYS_pdfork] = TREAT_FORK,
    [SYS_execve] = TREAT_EXECUTE,
    [SYS_fexecve] = TREAT_EXECUTE,
    [SYS___mac_execve] = TREAT_EXECUTE,
    [SYS_thr_create] = TREAT_REFUSE,
    [SYS_thr_new] = TREAT_REFUSE,
    [SYS_aio_read] = TREAT_REFUSE,
    [SYS_aio_readv] = TREAT_REFUSE,
    [SYS_aio_write] = TREAT_REFUSE,
    [SYS_aio_writev] = TREAT_REFUSE,
    [SYS_aio_fsync] = TREAT_REFUSE,
    [SYS_aio_mlock] = TREAT_REFUSE,
    [SYS_lio_listio] = TREAT_REFUSE,
    [SYS_jail] = TREAT_REFUSE,
    [SYS_jail_attach] = TREAT_REFUSE,
    [SYS_jail_set] = TREAT_REFUSE,
    [SYS_exit] = TREAT_OWN,
    [SYS_abort2] = TREAT_OWN,
    [SYS_syscall] = TREAT_OWN,
    [SYS___syscall] = TREAT_OWN,
    [SYS_sigreturn] = TREAT_OWN,
    [SYS_getcontext] = TREAT_OWN,
    [SYS_setcontext] = TREAT_OWN,
    [SYS_swapcontext] = TREAT_OWN,
    [SYS_sigaction] = TREAT_OWN,
    [SYS_sigaltstack] = TREAT_OWN,
    [SYS_sigprocmask] = TREAT_OWN,
    [SYS_sigsuspend] = TREAT_OWN,
    [SYS_sigfastblock] = TREAT_OWN,
    [SYS_sysarch] = TREAT_OWN,
    [SYS_ptrace] = TREAT_OWN,
    [SYS_ktrace] = TREAT_OWN,
    [SYS_utrace] = TREAT_OWN,
    [SYS_thr_exit] = TREAT_OWN,
    [SYS_thr_set_name] = TREAT_OWN,
    [SYS__umtx_op] = TREAT_OWN,
    [SYS_procctl] = TREAT_OWN,
    [SYS_kldload] = TREAT_OWN,
    [SYS_kldunload] = TREAT_OWN,
    [SYS_kldunloadf] = TREAT_OWN,
    [SYS_setlogin] = TREAT_OWN,
    [SYS_setsid] = TREAT_OWN,
    [SYS_reboot] = TREAT_OWN,
};

/*
 * Makes a call of the kernel's table, with the same protection as the kernel's for
 * calls of modules.
 */
int
lwc_native_call(struct thread *td, int number, void *arguments)
{
	struct sysent *entry = &sysent[number];
	bool guarded = (entry->sy_thrcnt & SY_THR_STATIC) == 0;
	int error;

	if (guarded) {
		error = ENTER_MODULE_CALL(td, entry);
		if (error != 0)
			return (error);
	}
	error = entry->sy_call(td, arguments); /* the kernel may have changed the entry */
	/*
	 * Some calls set td_errno themselves and set a flag; here the return value
	 * counts.
	 */
	if ((td->td_pflags & TDP_NERRNO) != 0) {
		td->td_pflags &= ~TDP_NERRNO;
		error = td->td_errno;
	}
	if (guarded && (entry->sy_thrcnt & SY_THR_STATIC) == 0)
		syscall_thread_exit(td, entry);
	return (error);
}

/* Reports whether a call may be made with another context's resources. */
bool
lwc_call_on_behalf(int number)
{
	if (number <= 0 || number >= SYS_MAXSYSCALL)
		return (false);
	/*
	 * Refuses our own calls and those of other modules, whose assumptions are
	 * unknown.
	 */
	return (
	    treatment[number] == TREAT_NATIVE && (sysent[number].sy_thrcnt & SY_THR_STATIC) != 0);
}

/*
 * Sends a call to the context's monitor. Returns the result of the monitor's own
 * call, because the thread is in the monitor afterwards; or, if the monitor cannot
 * take the call, the call's own error.
 */
static int
redirect(struct thread *td, struct lwc_process *process, int error)
{
	struct lwc_context *source = process->current, *monitor = source->monitor;
	const struct syscall_args *call = &td->td_sa;
	struct lwc_event event = {
	    .kind = LWC_EVENT_REDIRECTED,
	    .descriptor = -1,
	    .context = source->id,
	    .call = call->code,
	    .error = error,
	};

	memcpy(event.arguments, call->args,
	    MIN(call->callp->sy_narg, LWC_ARGUMENTS) * sizeof(event.arguments[0]));
	if (!rules_is_source(monitor->state) ||
	    lwc_switch_to(td, process, monitor, LWC_STEP_TRAP) != 0)
		return (error);
	shai_count_redirection();
	error = lwc_deliver_redirection(td, process, source, &event);
	lwc_reap(td, process);
	return (error);
}

static int
fork_natively(struct thread *td, struct lwc_process *process, int number, void *arguments)
{
	struct proc *p = td->td_proc;
	struct sysentvec *ours = p->p_sysent;
	int error;

	/* A switch would exchange a shared table or address space for the child too. */
	if (number == SYS_rfork) {
		int flags = *(int *)arguments;

		if ((flags & (RFMEM | RFTHREAD)) != 0 || (flags & (RFFDG | RFCFDG)) == 0)
			return (EOPNOTSUPP);
	}
	PROC_LOCK(p);
	p->p_sysent = process->native;
	PROC_UNLOCK(p);
	error = lwc_native_call(td, number, arguments);
	PROC_LOCK(p);
	p->p_sysent = ours;
	PROC_UNLOCK(p);
	return (error);
}

static int
dispatch(struct thread *td, void *arguments)
{
	struct lwc_process *process = td->td_proc->p_emuldata;
	struct lwc_context *context = process->current;
	int number = td->td_sa.code, error;
	bool monitored = context->monitor != NULL;

	if (number < 0 || number >= SYS_MAXSYSCALL)
		number = 0;
	if (monitored && (rules_call_in(context->redirected, number) ||
			     treatment[number] == TREAT_FORK || treatment[number] == TREAT_EXECUTE))
		return (redirect(td, process, EPERM));
	if (IN_CAPABILITY_MODE(td) && (sysent[number].sy_flags & SYF_CAPENABLED) == 0)
		error = ECAPMODE;
	else if (treatment[number] == TREAT_REFUSE)
		error = EOPNOTSUPP;
	else if (treatment[number] == TREAT_FORK)
		error = fork_natively(td, process, number, arguments);
	else
		error = lwc_native_call(td, number, arguments);
	/*
	 * The thread is still in the same context, or in another one after a switch,
	 * whose error is its own. A program that was just executed has no contexts.
	 */
	if (monitored && (error == ECAPMODE || error == ENOTCAPABLE) &&
	    lwc_process_of(td->td_proc) == process && process->current == context)
		error = redirect(td, process, error);
	return (error);
}

static void
end(struct proc *p)
{
	struct lwc_process *process = lwc_process_of(p);
	struct sysentvec *native = process->native;

	lwc_abandon(curthread, process);
	if (native->sv_onexit != NULL)
		native->sv_onexit(p);
}

static void
execute(struct thread *td)
{
	struct lwc_process *process = lwc_process_of(td->td_proc);
	struct sysentvec *native = process->native;

	lwc_abandon(td, process);
	if (native->sv_onexec_old != NULL)
		native->sv_onexec_old(td);
}

void
lwc_redirect_init(void)
{
	lwc_vectors_init(dispatch, end, execute);
}
