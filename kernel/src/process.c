/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processes that have contexts: how they begin, how they end.
 */
#include "context.h"

#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_map.h>

/*
 * p_emuldata belongs to the emulation of foreign systems. A process of this
 * system has none, and only one whose vector is ours is asked for it.
 */
struct lwc_process *
lwc_process_of(struct proc *p)
{
	KASSERT(p == curproc, ("lwc: another process's contexts"));
	return (lwc_vectors_installed(p) ? p->p_emuldata : NULL);
}

/*
 * What a process must not have when it makes its first context. Shared tables
 * and borrowed memory would be switched under somebody else; asynchronous I/O
 * runs in whatever address space the process has at that moment.
 */
static int
check_candidate(struct proc *p)
{
	int error = 0;

	if (p->p_sysent->sv_table != sysent || !SV_PROC_FLAG(p, SV_LP64))
		return (EOPNOTSUPP);
	PROC_LOCK(p);
	if (p->p_numthreads != 1 || (p->p_flag & (P_PPWAIT | P_SYSTEM)) != 0 ||
	    p->p_fdtol != NULL || p->p_fd->fd_refcnt != 1 || p->p_aioinfo != NULL)
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
	lwc_hold(process->root); /* given back by lwc_abandon */
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
 * and the like, hold it and then use whatever address space it has, without a
 * reference (proc_rwmem): they rely on a held process not ending. One that is to
 * be freed may have been that address space. Whoever comes after us finds the
 * current one. Holders do not wake us before the process exits; so look again.
 */
static void
wait_for_holders(struct proc *p)
{
	PROC_LOCK(p);
	while (p->p_lock > 0)
		(void)msleep(&p->p_lock, &p->p_mtx, PWAIT, "lwchold", 1);
	PROC_UNLOCK(p);
}

/* Takes a context out of its process. What still refers to it finds it dead. */
static void
discard(struct thread *td, struct lwc_process *process, struct lwc_context *context)
{
	struct lwc_context *other;
	struct lwc_context *monitor = context->monitor;
	bool unused;
	int error __diagused;

	error = rules_step(&context->state, LWC_STEP_DISCARD);
	KASSERT(error == 0, ("lwc: discarding the current context"));
	context->monitor = NULL;
	TAILQ_REMOVE(&process->contexts, context, link);
	TAILQ_FOREACH(other, &process->contexts, link)
	if (other->caller == context)
		other->caller = NULL;
	if (context->resources.vmspace != NULL)
		wait_for_holders(process->proc);
	lwc_resources_free(td, context);
	lwc_discharge_context(process);
	mtx_lock(&lwc_lock);
	if (context->doomed)
		TAILQ_REMOVE(&process->doomed, context, doomed_link);
	context->doomed = false;
	context->process = NULL;
	unused = context->holders == 0;
	mtx_unlock(&lwc_lock);
	if (unused)
		lwc_context_free(context);
	if (monitor != NULL)
		lwc_release(monitor);
}

/*
 * Discards what is doomed. Closing the descriptors of one may doom others, which
 * this loop finds: a chain of contexts takes no stack. Not inside a call on behalf
 * of another: the process has that one's resources then, and the other has ours.
 */
void
lwc_reap(struct thread *td, struct lwc_process *process)
{
	struct lwc_context *context;

	KASSERT(td == curthread && process->proc == td->td_proc, ("lwc: not the owner"));
	if (process->reaping || process->borrowed != 0)
		return;
	process->reaping = true;
	for (;;) {
		mtx_lock(&lwc_lock);
		TAILQ_FOREACH(context, &process->doomed, doomed_link)
		if (context != process->current)
			break;
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

	process->reaping = true; /* descriptors closed on the way must not start another */
	do {
		TAILQ_FOREACH(context, &process->contexts, link)
		if (context != process->current)
			break;
		next = context;
		if (context != NULL)
			discard(td, process, context);
	} while (next != NULL);
	process->reaping = false;
}

/*
 * Ends the process's use of contexts: it keeps the current one's resources and is
 * like any other afterwards. Called when it exits or executes a program, by its
 * only thread.
 */
void
lwc_abandon(struct thread *td, struct lwc_process *process)
{
	struct proc *p = process->proc;
	struct lwc_context *root = process->root;
	struct lwc_context *current = process->current;

	KASSERT(process->borrowed == 0, ("lwc: end of a process inside a borrowed call"));
	lwc_discard_all(td, process);
	/* The current one's resources are the process's: nothing of its own is left. */
	process->current = NULL;
	current->state = LWC_STATE_SUSPENDED;
	discard(td, process, current);
	lwc_release(root);
	PROC_LOCK(p);
	p->p_sysent = process->native;
	p->p_emuldata = NULL;
	PROC_UNLOCK(p);
	KASSERT(
	    TAILQ_EMPTY(&process->doomed) && process->count == 0, ("lwc: contexts left behind"));
	lwc_discharge_process(process);
	free(process, M_SHAI);
}
