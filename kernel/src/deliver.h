/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a context finds when it becomes current: the result of the call it left
 * with. Called right after a switch, by the thread that is now in the context.
 * They return what that call returns.
 */
#ifndef SHAI_DELIVER_H
#define SHAI_DELIVER_H

#include "context.h"

/* From a switch: an event, and who may be switched back to. */
int lwc_deliver_switch(struct thread *td, struct lwc_process *process, struct lwc_context *source,
    const struct lwc_message *message);

/* From its monitor, to a context whose call was redirected: the call's outcome. */
int lwc_deliver_result(struct thread *td, const struct lwc_message *message);

/* To a monitor: somebody's redirected call. */
int lwc_deliver_redirection(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct lwc_event *event);

#endif
