/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The beginning and the end of a process's use of contexts.
 */
#include "context.h"

#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_map.h>

/*
 * Returns the contexts of a process. p_emuldata belongs to the emulation of
 * foreign systems. Native processes do not use it, and this is called only for
 * processes with one of our vectors.
 */
struct lwc_process *
lwc_process_of(struct proc *p)
{
	KASSERT(p == curproc, ("lwc: another process's contexts"));
	return (lwc_vectors_installed(p) ? p->p_emuldata : NULL);
}

/*
 * Refuses the first context of a process with shared tables, borrowed memory or
 * asynchronous I/O. A switch would exchange shared tables and memory for other
 * processes too, and asynchronous I/O runs in the address space that the
 * process has at that moment.
 */
static int
check_candidate(struct proc *p)
{
	int error = 0;

	if (p->p_sysent->sv_table != sysent || !SV_PROC_FLAG(p, SV_LP64))
		return (EOPNOTSUPP);
	PROC_LOCK(p);
	if (p->p_numthreads != 1 || (p->p_flag & (P_PPWAIT | P_SYSTEM)) != 0 ||
	    p->p_fdtol != NULL || p->p_fd->fd_refcnt != 1 ||
	    p->p_aioinfo != NULL)
		error = EBUSY;
	PROC_UNLOCK(p);
	return (error);
}

int
lwc_adopt(struct thread *td, struct lwc_process **out)
{
	struct proc *p = td->td_proc;
	struct lwc_process *process;
	struct sysentvec *vector;
	int error;

	*out = lwc_process_of(p);
	if (*out != NULL)
		return (0);
	error = check_candidate(p);
	if (error != 0)
		return (error);
	vector = lwc_vector_for(p->p_sysent);
	if (vector == NULL)
		return (EOPNOTSUPP);
	process = malloc(sizeof(*process), M_SHAI, M_WAITOK | M_ZERO);
	process->proc = p;
	process->native = p->p_sysent;
	TAILQ_INIT(&process->contexts);
	TAILQ_INIT(&process->doomed);
	lwc_charge_process(process, td->td_ucred->cr_ruid);
	error = lwc_context_new(process, &process->root);
	if (error != 0) {
		lwc_discharge_process(process);
		free(process, M_SHAI);
		return (error);
	}
	lwc_hold(process->root); /* released by lwc_abandon */
	process->root->state = LWC_STATE_CURRENT;
	process->current = process->root;
	PROC_LOCK(p);
	p->p_emuldata = process;
	p->p_sysent = vector;
	PROC_UNLOCK(p);
	*out = process;
	return (0);
}

/*
 * Waits until nobody holds the process. A debugger, and sysctl(3) for arguments
 * and the like, hold the process and then use its current address space without
 * a reference (proc_rwmem): they rely on a held process not ending. The address
 * space to be freed may have been the current one when they began. Later
 * holders find the present one. Holders wake us only when the process exits, so
 * this polls. Some of them wait until this thread has stopped (procctl(2) with
 * PROC_REAP_KILL), so it stops here when it has to.
 */
static void
wait_for_holders(struct proc *p)
{
	PROC_LOCK(p);
	while (p->p_lock > 0) {
		if (thread_suspend_check_needed())
			(void)thread_suspend_check(0);
		else
			(void)msleep(
			    &p->p_lock, &p->p_mtx, PWAIT, "lwchold", 1);
	}
	PROC_UNLOCK(p);
}

/* Takes a context out of its process. References that are left find it dead. */
static void
discard(
    struct thread *td, struct lwc_process *process, struct lwc_context *context)
{
	struct lwc_context *other;
	struct lwc_context *monitor = context->monitor;
	bool unused;
	int error __diagused;

	error = rules_step(&context->state, LWC_STEP_DISCARD);
	KASSERT(error == 0, ("lwc: discarding the current context"));
	context->monitor = NULL;
	TAILQ_REMOVE(&process->contexts, context, link);
	TAILQ_FOREACH(other, &process->contexts, link) {
		if (other->caller == context)
			other->caller = NULL;
	}
	if (context->resources.vmspace != NULL)
		wait_for_holders(process->proc);
	lwc_resources_free(td, context);
	lwc_unpin(process, context);
	lwc_discharge_context(process);
	mtx_lock(&lwc_lock);
	if (context->doomed)
		TAILQ_REMOVE(&process->doomed, context, doomed_link);
	context->doomed = false;
	context->process = NULL;
	unused = context->holders == 0 && context->references == 0;
	mtx_unlock(&lwc_lock);
	if (unused)
		lwc_context_free(context);
	if (monitor != NULL)
		lwc_forget(monitor);
}

/*
 * Discards the doomed contexts. Closing the descriptors of one may doom others,
 * which this loop finds, so that a chain of contexts needs no stack. Not called
 * during a call on behalf of another context: the process then has that
 * context's resources, and that context has ours.
 */
void
lwc_reap(struct thread *td, struct lwc_process *process)
{
	struct lwc_context *context;

	KASSERT(td == curthread && process->proc == td->td_proc,
	    ("lwc: not the owner"));
	if (process->reaping || process->borrowed != 0)
		return;
	/* Without the lock: what another process dooms at this moment is found
	 * next time. */
	if (TAILQ_EMPTY(&process->doomed))
		return;
	process->reaping = true;
	for (;;) {
		mtx_lock(&lwc_lock);
		TAILQ_FOREACH(context, &process->doomed, doomed_link) {
			if (context != process->current)
				break;
		}
		mtx_unlock(&lwc_lock);
		if (context == NULL)
			break;
		discard(td, process, context);
	}
	process->reaping = false;
}

void
lwc_discard_all(struct thread *td, struct lwc_process *process)
{
	struct lwc_context *context, *next;

	process->reaping =
	    true; /* closing descriptors must not start another */
	do {
		TAILQ_FOREACH(context, &process->contexts, link) {
			if (context != process->current)
				break;
		}
		next = context;
		if (context != NULL)
			discard(td, process, context);
	} while (next != NULL);
	process->reaping = false;
}

/*
 * Ends the process's use of contexts: it keeps the resources of the current
 * one, and is an ordinary process afterwards. Called by its only thread when it
 * exits or executes a program.
 */
void
lwc_abandon(struct thread *td, struct lwc_process *process)
{
	struct proc *p = process->proc;
	struct lwc_context *root = process->root;
	struct lwc_context *current = process->current;

	KASSERT(process->borrowed == 0,
	    ("lwc: end of a process inside a borrowed call"));
	lwc_discard_all(td, process);
	/*
	 * The current context's resources are the process's, so it has none of
	 * its own left.
	 */
	process->current = NULL;
	current->state = LWC_STATE_SUSPENDED;
	discard(td, process, current);
	lwc_release(root);
	PROC_LOCK(p);
	p->p_sysent = process->native;
	p->p_emuldata = NULL;
	PROC_UNLOCK(p);
	KASSERT(TAILQ_EMPTY(&process->doomed) && process->count == 0,
	    ("lwc: contexts left behind"));
	lwc_discharge_process(process);
	free(process, M_SHAI);
}
