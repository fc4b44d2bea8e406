/* SPDX-License-Identifier: BSD-2-Clause */
#include "deliver.h"

/*
 * Writes the event to the address that the context gave when it left. If the
 * address is not writable, the context's call fails with EFAULT, and the
 * context is current all the same.
 */
static int
deliver(struct thread *td, struct lwc_context *target,
    const struct lwc_event *event)
{
	struct lwc_event *user = target->event;

	target->event = NULL;
	lwc_machine_return(td, 0);
	return (copyout(event, user, sizeof(*event)));
}

int
lwc_deliver_switch(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct lwc_message *message)
{
	struct lwc_context *target = process->current;
	struct lwc_event event = {
	    .kind = LWC_EVENT_SWITCHED,
	    .descriptor = -1,
	    .context = source->id,
	    .argument = message->argument,
	};

	target->caller = (message->flags & LWC_CALL) != 0 ? source : NULL;
	target->caller_rights = LWC_RIGHT_SWITCH;
	return (deliver(td, target, &event));
}

int
lwc_deliver_result(struct thread *td, const struct lwc_message *message)
{
	lwc_machine_return(td, message->argument);
	return (message->error);
}

int
lwc_deliver_redirection(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct lwc_event *event)
{
	struct lwc_context *target = process->current;

	target->caller = source;
	target->caller_rights =
	    LWC_RIGHTS_ALL; /* it decides about the source's call */
	return (deliver(td, target, event));
}
