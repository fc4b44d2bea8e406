/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Contexts: their resources, and the switch between them.
 */
#include "context.h"
#include "compat.h"

#include <sys/racct.h>
#include <sys/resourcevar.h>
#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_extern.h>
#include <vm/vm_map.h>

int
lwc_context_new(struct lwc_process *process, struct lwc_context **out)
{
	struct lwc_context *context;
	int error;

	error = lwc_charge_context(process);
	if (error != 0)
		return (error);
	context = malloc(sizeof(*context), M_SHAI, M_WAITOK | M_ZERO);
	/* One after the other, they would tell how many there have been. */
	arc4random_buf(&context->id, sizeof(context->id));
	context->process = process;
	context->state = LWC_STATE_CREATED;
	context->machine = lwc_machine_alloc();
	RB_INIT(&context->conduits);
	TAILQ_INSERT_TAIL(&process->contexts, context, link);
	*out = context;
	return (0);
}

/*
 * Frees the structure itself, which must be detached, held by nobody, and
 * without resources.
 */
void
lwc_context_free(struct lwc_context *context)
{
	KASSERT(context->state == LWC_STATE_DEAD && context->holders == 0 &&
		    context->references == 0,
	    ("lwc: freeing a context in use"));
	free(context, M_SHAI);
}

void
lwc_hold(struct lwc_context *context)
{
	mtx_lock(&lwc_lock);
	context->holders++;
	if (context->doomed) { /* what the current context's caller was */
		TAILQ_REMOVE(&context->process->doomed, context, doomed_link);
		context->doomed = false;
	}
	mtx_unlock(&lwc_lock);
}

/*
 * Removes one holder. Returns true if nothing refers to the context any more;
 * the caller then has to free it.
 */
bool
lwc_release_locked(struct lwc_context *context)
{
	mtx_assert(&lwc_lock, MA_OWNED);
	KASSERT(context->holders > 0, ("lwc: released more often than held"));
	if (--context->holders != 0)
		return (false);
	if (context->process == NULL)
		return (context->references == 0);
	context->doomed = true;
	TAILQ_INSERT_TAIL(&context->process->doomed, context, doomed_link);
	return (false);
}

void
lwc_release(struct lwc_context *context)
{
	bool unused;

	mtx_lock(&lwc_lock);
	unused = lwc_release_locked(context);
	mtx_unlock(&lwc_lock);
	if (unused)
		lwc_context_free(context);
}

/* Keeps a context's structure, but not the context alive. */
void
lwc_refer(struct lwc_context *context)
{
	mtx_lock(&lwc_lock);
	context->references++;
	mtx_unlock(&lwc_lock);
}

void
lwc_forget(struct lwc_context *context)
{
	bool unused;

	mtx_lock(&lwc_lock);
	KASSERT(context->references > 0,
	    ("lwc: forgotten more often than referred to"));
	context->references--;
	unused = context->references == 0 && context->holders == 0 &&
		 context->process == NULL;
	mtx_unlock(&lwc_lock);
	if (unused)
		lwc_context_free(context);
}

/*
 * Frees everything that a context holds. Only its owner may call this: closing
 * a file releases record locks by process, so a kernel thread would release the
 * wrong ones.
 */
void
lwc_resources_free(struct thread *td, struct lwc_context *context)
{
	struct lwc_resources *resources = &context->resources;
	struct conduit_node *node;

	if (resources->files != NULL)
		lwc_free_files(td, resources->files);
	if (resources->directories != NULL)
		lwc_free_directories(td, resources->directories);
	if (resources->actions != NULL)
		sigacts_free(resources->actions);
	if (resources->vmspace != NULL)
		vmspace_free(resources->vmspace);
	if (resources->credentials != NULL)
		crfree(resources->credentials);
	memset(resources, 0, sizeof(*resources));
	while ((node = conduits_take(&context->conduits)) != NULL)
		free(node, M_SHAI);
	context->conduit_count = 0;
	lwc_machine_free(context->machine);
	context->machine = NULL;
}

/*
 * Makes credentials exclusive, as the kernel requires of those that a process
 * takes. While this context was current, fork(2) may have shared them with a
 * child; then a copy replaces them.
 */
static void
make_private(struct ucred **credentials)
{
	struct ucred *old = *credentials;

	if (!CREDENTIALS_ARE_PRIVATE(old)) {
		*credentials = crdup(old);
		crfree(old);
	}
}

static void
exchange_credentials(struct proc *p, struct lwc_resources *resources)
{
	struct ucred *old = p->p_ucred, *new = resources->credentials;

	PROC_LOCK_ASSERT(p, MA_OWNED);
	KASSERT(old->cr_prison == new->cr_prison,
	    ("lwc: contexts in different jails"));
	proc_set_cred(p, new);
	COUNT_PROCESS(old, new);
	resources->credentials = old;
#ifdef RACCT
	racct_proc_ucred_changed(p, old, new);
#endif
}

void
lwc_thread_save(struct thread *td, struct lwc_thread_state *state)
{
	state->mask = td->td_sigmask;
	state->alternate_stack = td->td_sigstk;
	state->alternate_stack_flag = td->td_pflags & TDP_ALTSTACK;
	state->fast_block_flags =
	    td->td_pflags & (TDP_SIGFASTBLOCK | TDP_SIGFASTPENDING);
	state->fast_block_address = td->td_sigblock_ptr;
	state->fast_block_value = td->td_sigblock_val;
	state->robust_list = td->td_rb_list;
	state->robust_private_list = td->td_rbp_list;
	state->robust_inactive = td->td_rb_inact;
#if __FreeBSD_version >= 1500000
	state->extended_errors = td->td_exterr_ptr;
	state->extended_error_flags = td->td_pflags2 & TDP2_UEXTERR;
#endif
}

/*
 * Saves the state for a context that is left. A call that is redirected may
 * have set a mask for its duration (pselect(2)): here it ends, and the kernel
 * would restore the old mask on the way out, which leads to another context.
 * Signals to the thread were raised by the context's own calls, and wait for
 * it. A file that became too large is told to the process instead: of a session
 * that blocks this signal, it would come to the monitor.
 */
static void
thread_leave(struct thread *td, struct lwc_context *context)
{
	struct proc *p = td->td_proc;
	struct lwc_thread_state *state = &context->thread;

	lwc_thread_save(td, state);
	if (context->monitor != NULL && SIGISMEMBER(p->p_siglist, SIGXFSZ)) {
		PROC_LOCK(p);
		sigqueue_delete(&p->p_sigqueue, SIGXFSZ);
		PROC_UNLOCK(p);
	}
	if ((td->td_pflags & TDP_OLDMASK) != 0) {
		state->mask = td->td_oldsigmask;
		td->td_pflags &= ~TDP_OLDMASK;
	}
	state->woken = td->td_pflags & TDP_WAKEUP;
	SIGEMPTYSET(state->pending);
	if (SIGISEMPTY(td->td_siglist))
		return;
	PROC_LOCK(p);
	state->pending = td->td_siglist;
	sigqueue_flush(&td->td_sigqueue);
	if (SIGISMEMBER(state->pending, SIGKILL)) { /* is for the process */
		SIGDELSET(state->pending, SIGKILL);
		tdsignal(td, SIGKILL);
	}
	PROC_UNLOCK(p);
}

/* Sends the thread the signals that waited for the context. */
static void
send_pending(struct thread *td, struct lwc_thread_state *state)
{
	if (SIGISEMPTY(state->pending))
		return;
	for (int number = 1; number <= _SIG_MAXSIG; number++)
		if (SIGISMEMBER(state->pending, number))
			tdsignal(td, number);
}

static void
thread_enter(struct thread *td, struct lwc_thread_state *state)
{
	PROC_LOCK_ASSERT(td->td_proc, MA_OWNED);
	td->td_sigstk = state->alternate_stack;
	td->td_pflags &= ~(
	    TDP_ALTSTACK | TDP_SIGFASTBLOCK | TDP_SIGFASTPENDING | TDP_WAKEUP);
	td->td_pflags |= state->alternate_stack_flag | state->fast_block_flags |
			 state->woken;
#if __FreeBSD_version >= 1500000
	td->td_exterr_ptr = state->extended_errors;
	td->td_pflags2 &= ~(TDP2_UEXTERR | TDP2_EXTERR);
	td->td_pflags2 |= state->extended_error_flags;
#endif
	td->td_sigblock_ptr = state->fast_block_address;
	td->td_sigblock_val = state->fast_block_value;
	td->td_rb_list = state->robust_list;
	td->td_rbp_list = state->robust_private_list;
	td->td_rb_inact = state->robust_inactive;
	td->td_sigmask = state->mask;
	send_pending(td, state);
	signotify(td); /* signals that the other mask blocked may be deliverable
			  now */
}

#define EXCHANGE(a, b)                                                         \
	do {                                                                   \
		__typeof(a) kept = (a);                                        \
		(a) = (b);                                                     \
		(b) = kept;                                                    \
	} while (0)

/*
 * Exchanges the given resources with the process's, and gives the thread the
 * state if there is one, in one step for everybody who looks under the process
 * lock. Must not be called with resources that are missing.
 */
void
lwc_exchange(struct thread *td, struct lwc_resources *resources, uint32_t use,
    struct lwc_thread_state *state)
{
	struct proc *p = td->td_proc;

	KASSERT(td == curthread && p->p_numthreads == 1,
	    ("lwc: exchange under threads"));
	if ((use & LWC_USE_CREDENTIALS) != 0)
		make_private(&resources->credentials);
	PROC_LOCK(p);
	if ((use & LWC_USE_MEMORY) != 0)
		EXCHANGE(p->p_vmspace, resources->vmspace);
	if ((use & LWC_USE_FILES) != 0) {
		EXCHANGE(p->p_fd, resources->files);
		EXCHANGE(p->p_pd, resources->directories);
	}
	if ((use & LWC_USE_SIGNALS) != 0)
		EXCHANGE(p->p_sigacts, resources->actions);
	if ((use & LWC_USE_CREDENTIALS) != 0)
		exchange_credentials(p, resources);
	if (state != NULL)
		thread_enter(td, state);
	PROC_UNLOCK(p);
	if ((use & LWC_USE_MEMORY) != 0)
		pmap_activate(td);
	if ((use & LWC_USE_CREDENTIALS) != 0)
		thread_cow_update(
		    td); /* update td_ucred now, not at the next call */
}

/*
 * Leaves the current context by a step and makes another current. Afterwards
 * the thread is in the other's address space, with its registers in the frame.
 * The caller delivers the event and the result. After a failure nothing has
 * changed.
 */
int
lwc_switch_to(struct thread *td, struct lwc_process *process,
    struct lwc_context *target, enum lwc_step step)
{
	const struct proc *p = td->td_proc;
	const struct lwc_resources here = {
	    .vmspace = p->p_vmspace, .files = p->p_fd};
	struct lwc_context *source = process->current;
	int error;

	if (process->borrowed != 0)
		return (EDEADLK);
	if (lwc_machine_is_stepped(td))
		return (EBUSY);
	error = lwc_pin(process, source, &here);
	if (error != 0)
		return (error);
	error = rules_step(&target->state, LWC_STEP_ENTER);
	if (error != 0)
		return (error);
	error = rules_step(&source->state, step);
	KASSERT(error == 0, ("lwc: the current context is not current"));
	thread_leave(td, source);
	/* Exchange by way of source: its empty places take the process's
	 * resources. */
	source->resources = target->resources;
	memset(&target->resources, 0, sizeof(target->resources));
	lwc_exchange(td, &source->resources, LWC_USE_ALL, &target->thread);
	process->current = target;
	lwc_machine_exchange(td, source->machine, target->machine);
	shai_count_switch();
	return (0);
}
