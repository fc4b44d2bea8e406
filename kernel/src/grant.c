/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Granting a context the conduits that it may receive.
 */
#include "context.h"

#include <sys/capsicum.h>

#include "arguments.h"

/* Adds copies of the conduits. After a failure, those added before it stay. */
static int
grant(struct lwc_process *process, struct lwc_context *context,
    const struct shai_conduit *conduits, u_int count)
{
	int error = 0;

	for (u_int i = 0; i < count && error == 0; i++)
		error = rules_check_conduit(&conduits[i]);
	for (u_int i = 0; i < count && error == 0; i++) {
		struct conduit_node *node;

		error = lwc_charge_conduit(process, context);
		if (error != 0)
			break;
		node = malloc(sizeof(*node), M_SHAI, M_WAITOK);
		node->conduit = conduits[i];
		if (conduits_add(&context->conduits, node) != NULL) {
			context->conduit_count--;
			free(node, M_SHAI);
		}
	}
	return (error);
}

/* Reports whether the current context may widen what the target receives. */
static bool
may_grant(struct thread *td, const struct lwc_process *process,
    const struct lwc_context *target)
{
	const struct lwc_context *current = process->current;

	return (rules_may_grant(current->monitor != NULL,
	    IN_CAPABILITY_MODE(td), target->monitor == current));
}

int
sys_shai_grant(struct thread *td, struct shai_grant_args *arguments)
{
	struct lwc_process *process;
	struct shai_conduit *conduits;
	struct lwc_target target;
	int error;

	if (arguments->count < 1 || arguments->count > SHAI_GRANT_MAX)
		return (EINVAL);
	error = lwc_adopt(td, &process);
	if (error == 0)
		error = lwc_target_get(
		    td, process, arguments->context, LWC_RIGHT_GRANT, &target);
	if (error != 0)
		return (error);
	conduits =
	    malloc(arguments->count * sizeof(*conduits), M_SHAI, M_WAITOK);
	error = copyin(arguments->conduits, conduits,
	    arguments->count * sizeof(*conduits));
	if (error == 0 && !may_grant(td, process, target.context))
		error = EPERM;
	if (error == 0)
		error =
		    grant(process, target.context, conduits, arguments->count);
	free(conduits, M_SHAI);
	lwc_target_put(td, process, &target);
	return (error);
}
