/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system calls on contexts. All checks of permissions are here.
 */
#include "context.h"

#include <security/audit/audit.h>
#include <sys/capsicum.h>
#include <sys/syscall.h>
#include <sys/syscallsubr.h>
#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_map.h>

#include "arguments.h"
#include "deliver.h"
#include "shared_state.h"

/* A specification with its arrays, copied in and checked. */
struct specification {
	struct lwc_spec fixed;
	struct lwc_range *ranges;
	struct lwc_descriptors *descriptors;
};

static int
copy_array(const void *user, size_t size, u_int count, void **out)
{
	int error;

	*out = NULL;
	if (count == 0)
		return (0);
	*out = malloc(size * count, M_SHAI, M_WAITOK);
	error = copyin(user, *out, size * count);
	return (error);
}

static void
forget(struct specification *specification)
{
	free(specification->ranges, M_SHAI);
	free(specification->descriptors, M_SHAI);
}

static int
check_arrays(const struct specification *specification, vm_map_t map)
{
	int error = 0;

	for (u_int i = 0; i < specification->fixed.range_count && error == 0;
	     i++)
		error = rules_check_range(&specification->ranges[i],
		    vm_map_min(map), vm_map_max(map), PAGE_SIZE);
	for (u_int i = 0;
	     i < specification->fixed.descriptor_count && error == 0; i++)
		error = rules_check_descriptors(&specification->descriptors[i]);
	return (error);
}

static int
copy_specification(
    const struct lwc_spec *user, vm_map_t map, struct specification *out)
{
	int error;

	memset(out, 0, sizeof(*out));
	error = copyin(user, &out->fixed, sizeof(out->fixed));
	if (error == 0)
		error = rules_check_spec(&out->fixed);
	if (error == 0)
		error = copy_array(out->fixed.ranges, sizeof(*out->ranges),
		    out->fixed.range_count, (void **)&out->ranges);
	if (error == 0)
		error = copy_array(out->fixed.descriptors,
		    sizeof(*out->descriptors), out->fixed.descriptor_count,
		    (void **)&out->descriptors);
	if (error == 0)
		error = check_arrays(out, map);
	if (error != 0)
		forget(out);
	return (error);
}

/*
 * Chooses the monitor of the new context's refused calls: the given monitor, or
 * the source's. Calls that are redirected from a source are redirected from its
 * copies too, so a context cannot get rid of its monitor by copying itself.
 */
static int
choose_monitor(struct thread *td, struct lwc_process *process,
    const struct lwc_spec *spec, struct lwc_context *source,
    struct lwc_context *new)
{
	struct lwc_context *monitor = source->monitor;
	struct lwc_target named;
	int error;

	if ((spec->flags & LWC_MONITORED) != 0) {
		if (process->current->monitor != NULL)
			return (EPERM);
		error = lwc_target_get(
		    td, process, spec->monitor, LWC_RIGHT_SWITCH, &named);
		if (error != 0)
			return (error);
		monitor = named.context;
	}
	if (monitor != NULL)
		lwc_refer(monitor);
	new->monitor = monitor;
	for (u_int i = 0; i < LWC_CALL_WORDS; i++)
		new->redirected[i] =
		    source->redirected[i] | spec->redirected[i];
	if ((spec->flags & LWC_MONITORED) != 0)
		lwc_target_put(td, process, &named);
	return (0);
}

static struct ucred *
copy_credentials(struct ucred *from, uint32_t flags)
{
	struct ucred *new = crdup(from);

	if ((flags & LWC_CAPABILITY_MODE) != 0)
		new->cr_flags |= CRED_FLAG_CAPMODE;
	return (new);
}

/*
 * Copies the source's registers and resources. After a failure, new->resources
 * holds the copies made so far.
 */
static int
copy_context(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct specification *specification,
    struct lwc_context *new)
{
	struct proc *p = td->td_proc;
	struct lwc_resources here = {
	    p->p_vmspace, p->p_fd, p->p_pd, p->p_ucred, p->p_sigacts};
	struct lwc_resources *from =
	    source == process->current ? &here : &source->resources;
	const struct lwc_spec *spec = &specification->fixed;
	int error;

	new->resources.credentials =
	    copy_credentials(from->credentials, spec->flags);
	new->resources.directories = pdcopy(from->directories);
	new->resources.actions = sigacts_alloc();
	sigacts_copy(new->resources.actions, from->actions);
	error = lwc_copy_files(td, from->files, specification->descriptors,
	    spec->descriptor_count, &new->resources.files);
	if (error == 0)
		error = lwc_copy_memory(from->vmspace, specification->ranges,
		    spec->range_count, &new->resources.vmspace);
	if (error != 0)
		return (error);
	if (source == process->current) {
		lwc_machine_save(td, new->machine);
		lwc_thread_save(td, &new->thread);
	} else {
		lwc_machine_copy(new->machine, source->machine);
		new->thread = source->thread;
		new->thread.woken = 0;
		SIGEMPTYSET(new->thread.pending); /* as after fork(2) */
		new->event = source->event;
	}
	return (0);
}

static int
create_from(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct specification *specification,
    struct lwc_event *user)
{
	struct lwc_event event = {.kind = LWC_EVENT_CREATED};
	struct lwc_context *new;
	int error;

	if (source != process->current && !rules_is_source(source->state))
		return (EBUSY);
	error = lwc_context_new(process, &new);
	if (error != 0)
		return (error);
	new->event = user;
	lwc_hold(new); /* until the descriptor holds it, or until a failure */
	error = choose_monitor(td, process, &specification->fixed, source, new);
	if (error == 0)
		error = copy_context(td, process, source, specification, new);
	if (error == 0)
		error = lwc_pin(process, new, &new->resources);
	if (error == 0)
		error = lwc_descriptor_open(td, new, &event.descriptor);
	if (error == 0) {
		event.context = new->id;
		error = copyout(&event, user, sizeof(event));
		if (error != 0)
			(void)kern_close(td, event.descriptor);
	}
	lwc_release(new);
	return (error);
}

int
sys_lwc_create(struct thread *td, struct lwc_create_args *arguments)
{
	struct specification specification;
	struct lwc_process *process;
	struct lwc_target source;
	int error;

	error = copy_specification(
	    arguments->spec, &td->td_proc->p_vmspace->vm_map, &specification);
	if (error != 0)
		return (error);
	error = lwc_adopt(td, &process);
	if (error == 0 && process->borrowed != 0)
		error = EDEADLK;
	if (error == 0)
		error = lwc_target_get(td, process, specification.fixed.source,
		    LWC_RIGHT_CREATE, &source);
	if (error == 0) {
		error = create_from(td, process, source.context, &specification,
		    arguments->event);
		lwc_target_put(td, process, &source);
	}
	forget(&specification);
	return (error);
}

int
sys_lwc_switch(struct thread *td, struct lwc_switch_args *arguments)
{
	struct lwc_process *process = lwc_process_of(td->td_proc);
	struct lwc_context *source;
	struct lwc_target target;
	struct lwc_message message;
	enum lwc_state was;
	int error;

	if (process == NULL)
		return (ESRCH);
	error = copyin(arguments->message, &message, sizeof(message));
	if (error == 0)
		error = rules_check_message(&message);
	if (error == 0)
		error = lwc_target_get(
		    td, process, arguments->context, LWC_RIGHT_SWITCH, &target);
	if (error != 0)
		return (error);
	source = process->current;
	was = target.context->state;
	error = lwc_switch_to(td, process, target.context, LWC_STEP_LEAVE);
	if (error == 0) {
		source->event = arguments->event;
		if (was == LWC_STATE_TRAPPED)
			error = lwc_deliver_result(td, &message);
		else
			error =
			    lwc_deliver_switch(td, process, source, &message);
	}
	lwc_target_put(td, process, &target);
	return (error);
}

int
sys_lwc_restrict(struct thread *td, struct lwc_restrict_args *arguments)
{
	struct lwc_restriction restriction;
	struct lwc_process *process;
	struct lwc_target target;
	bool redirects = false;
	int error;

	error =
	    copyin(arguments->restriction, &restriction, sizeof(restriction));
	if (error == 0)
		error =
		    rules_check_restriction(arguments->context, &restriction);
	if (error == 0)
		error = lwc_adopt(td, &process);
	if (error != 0)
		return (error);
	for (u_int i = 0; i < LWC_CALL_WORDS; i++)
		redirects = redirects || restriction.redirected[i] != 0;
	error = lwc_target_get(td, process, arguments->context,
	    redirects ? LWC_RIGHT_CONFINE : 0, &target);
	if (error != 0)
		return (error);
	if (target.file != NULL)
		((struct lwc_reference *)target.file->f_data)->rights &=
		    restriction.rights;
	for (u_int i = 0; i < LWC_CALL_WORDS; i++)
		target.context->redirected[i] |= restriction.redirected[i];
	lwc_target_put(td, process, &target);
	if ((restriction.flags & LWC_CAPABILITY_MODE) != 0)
		error = lwc_native_call(td, SYS_cap_enter, NULL);
	return (error);
}

/*
 * Checks whether a call may be made on behalf of another context. It must not
 * bypass a monitor.
 */
static int
check_on_behalf(struct thread *td, const struct lwc_context *current,
    const struct lwc_context *target, int number, const syscallarg_t *arguments)
{
	if (!lwc_call_on_behalf(number))
		return (EINVAL);
	if (current->monitor != NULL &&
	    (rules_call_in(current->redirected, number) ||
		shared_state_call(td, number, arguments)))
		return (EPERM);
	if (target->monitor != NULL && target->monitor != current &&
	    rules_call_in(target->redirected, number))
		return (EPERM);
	return (0);
}

/*
 * Makes the call, and leaves a record of it for audit(4): of the call's own
 * event, with the credentials that it is made with.
 */
static int
call_audited(struct thread *td, int number, uint64_t arguments[LWC_ARGUMENTS])
{
	int error;

	(void)AUDIT_SYSCALL_ENTER(number, td);
	if (IN_CAPABILITY_MODE(td) &&
	    (sysent[number].sy_flags & SYF_CAPENABLED) == 0)
		error = ECAPMODE;
	else
		error = lwc_native_call(td, number, arguments);
	/* The call cannot be restarted: its arguments are in another context's
	 * frame. */
	if (error == ERESTART)
		error = EINTR;
	AUDIT_SYSCALL_EXIT(error, td);
	return (error);
}

/* Leaves a second record of a call, without arguments, with the credentials of
 * its caller. */
static void
audit_caller(struct thread *td, int number __unused, int error __unused)
{
	(void)AUDIT_SYSCALL_ENTER(number, td);
	AUDIT_SYSCALL_EXIT(error, td);
}

/* Makes the call, with the target's resources in place of the process's. */
static int
call_with(struct thread *td, struct lwc_process *process,
    struct lwc_context *target, uint32_t resources, int number,
    uint64_t arguments[LWC_ARGUMENTS])
{
	int error;

	lwc_exchange(td, &target->resources, resources, NULL);
	process->borrowed++;
	error = call_audited(td, number, arguments);
	process->borrowed--;
	lwc_exchange(td, &target->resources, resources, NULL);
	lwc_pin_present(process, target);
	if ((resources & LWC_USE_CREDENTIALS) != 0)
		audit_caller(td, number, error);
	return (error);
}

int
sys_lwc_syscall(struct thread *td, struct lwc_syscall_args *arguments)
{
	const uint32_t known =
	    LWC_USE_MEMORY | LWC_USE_FILES | LWC_USE_CREDENTIALS;
	struct lwc_process *process = lwc_process_of(td->td_proc);
	uint64_t values[LWC_ARGUMENTS];
	struct lwc_target target;
	int error;

	if (process == NULL)
		return (ESRCH);
	if ((arguments->resources & ~known) != 0 || arguments->resources == 0)
		return (EINVAL);
	if (process->borrowed != 0)
		return (EDEADLK);
	error = copyin(arguments->arguments, values, sizeof(values));
	if (error == 0)
		error = lwc_target_get(td, process, arguments->context,
		    LWC_RIGHT_SYSCALL, &target);
	if (error != 0)
		return (error);
	error = check_on_behalf(td, process->current, target.context,
	    arguments->number, (const syscallarg_t *)values);
	if (error == 0 && target.context == process->current)
		error = EBUSY;
	if (error == 0 && lwc_is_overcharged(process->user))
		error = EAGAIN;
	if (error == 0)
		error = call_with(td, process, target.context,
		    arguments->resources, arguments->number, values);
	lwc_target_put(td, process, &target);
	return (error);
}
