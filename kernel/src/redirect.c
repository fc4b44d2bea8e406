/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Redirection of system calls, without changes to the kernel's table.
 *
 * Every call of a process with contexts comes to dispatch() below (vectors.c).
 * It does what the kernel would have done, with the kernel's own table at that
 * moment (modules add calls to it). A call goes to the context's monitor
 * instead if the context has one, and the call is in the context's set or is
 * refused. Calls that contexts do not support, and calls that nobody has
 * decided on, fail (treatment.h). A call that fails with ECAPMODE or
 * ENOTCAPABLE has had no effect that a monitor would have to undo (kevent(2)
 * may have made some of its changes), so it can still be redirected.
 *
 * A forked child starts with its parent's vector. Therefore the parent gets its
 * original vector back for the duration of the call. It has only one thread, so
 * nothing else can happen in the meantime.
 */
#include "context.h"

#include <security/audit/audit.h>
#include <sys/capsicum.h>
#include <sys/syscall.h>
#include <sys/unistd.h>

#include "compat.h"
#include "deliver.h"
#include "shared_state.h"
#include "treatment.h"

/*
 * Makes a call of the kernel's table, with the same protection as the kernel's
 * for calls of modules.
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
	error = entry->sy_call(
	    td, arguments); /* the kernel may have changed the entry */
	/*
	 * Some calls set td_errno themselves and set a flag; here the return
	 * value counts.
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
	if (treatment_of(number) != TREAT_NATIVE || number >= SYS_MAXSYSCALL)
		return (false);
	/* A module can take the place of a call, with assumptions that are
	 * unknown. */
	return ((sysent[number].sy_thrcnt & SY_THR_STATIC) != 0);
}

/*
 * Sends a call to the context's monitor. Returns the result of the monitor's
 * own call, because the thread is in the monitor afterwards; or, if the monitor
 * cannot take the call, the call's own error.
 */
static int
redirect(struct thread *td, struct lwc_process *process, int error)
{
	struct lwc_context *source = process->current,
			   *monitor = source->monitor;
	const struct syscall_args *call = &td->td_sa;
	struct lwc_event event = {
	    .kind = LWC_EVENT_REDIRECTED,
	    .descriptor = -1,
	    .context = source->id,
	    .call = call->code,
	    .error = error,
	};

	memcpy(event.arguments, call->args,
	    MIN(call->callp->sy_narg, LWC_ARGUMENTS) *
		sizeof(event.arguments[0]));
	if (!rules_is_source(monitor->state) ||
	    lwc_switch_to(td, process, monitor, LWC_STEP_TRAP) != 0)
		return (error);
	/* The context's call has failed. What the monitor does for it has
	 * records of its own. */
	AUDIT_SYSCALL_EXIT(error, td);
	shai_count_redirection();
	error = lwc_deliver_redirection(td, process, source, &event);
	lwc_reap(td, process);
	return (error);
}

static int
fork_natively(
    struct thread *td, struct lwc_process *process, int number, void *arguments)
{
	struct proc *p = td->td_proc;
	struct sysentvec *ours = p->p_sysent;
	int error;

	/* A switch would exchange a shared table or address space for the child
	 * too. posix_spawn(3) takes vfork(2) where RFSPAWN is not known. */
	if (number == SYS_rfork) {
		int flags = *(int *)arguments;

		if ((flags & RFSPAWN) != 0)
			return (EINVAL);
		if ((flags & (RFMEM | RFTHREAD)) != 0 ||
		    (flags & (RFFDG | RFCFDG)) == 0)
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

/* Makes the call of the context itself. */
static int
call_natively(struct thread *td, struct lwc_process *process, int number,
    enum treatment treatment, void *arguments)
{
	if (treatment == TREAT_UNKNOWN || treatment == TREAT_REFUSE ||
	    number >= SYS_MAXSYSCALL)
		return (EOPNOTSUPP);
	if (IN_CAPABILITY_MODE(td) &&
	    (sysent[number].sy_flags & SYF_CAPENABLED) == 0)
		return (ECAPMODE);
	if (treatment == TREAT_FORK)
		return (fork_natively(td, process, number, arguments));
	return (lwc_native_call(td, number, arguments));
}

/*
 * Reports whether a call can be left to the kernel's table without coming back.
 * What executes a program discards the contexts before it ends, which may take
 * long (it closes descriptors), and from then on the module can be unloaded.
 */
static bool
is_made_directly(struct thread *td, int number)
{
	const struct sysent *entry = &sysent[number];

	return ((entry->sy_thrcnt & SY_THR_STATIC) != 0 &&
		(!IN_CAPABILITY_MODE(td) ||
		    (entry->sy_flags & SYF_CAPENABLED) != 0));
}

static int
dispatch(struct thread *td, void *arguments)
{
	struct lwc_process *process = td->td_proc->p_emuldata;
	struct lwc_context *context = process->current;
	int number = td->td_sa.code, error;
	enum treatment treatment = treatment_of(number);
	bool monitored = context->monitor != NULL;

	/* A switch would change what the stop goes on with, and the debugger
	 * holds the process, for which a discarded context waits. */
	if (IS_DEBUGGERS_CALL(td))
		return (EOPNOTSUPP);
	if (monitored &&
	    (rules_call_in(context->redirected, number) ||
		treatment == TREAT_FORK || treatment == TREAT_EXECUTE ||
		shared_state_call(td, number, td->td_sa.args)))
		return (redirect(td, process, EPERM));
	if (treatment == TREAT_EXECUTE && is_made_directly(td, number))
		RETURN_BY sysent[number].sy_call(td, arguments);
	if (monitored && shared_state_is_name_to_number(number, td->td_sa.args))
		error = shared_state_name_to_number(td, td->td_sa.args);
	else
		error =
		    call_natively(td, process, number, treatment, arguments);
	/*
	 * The thread is still in the same context, or in another one after a
	 * switch, whose error is its own. A program that was just executed has
	 * no contexts.
	 */
	if (monitored && (error == ECAPMODE || error == ENOTCAPABLE) &&
	    lwc_process_of(td->td_proc) == process &&
	    process->current == context)
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
