/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Delivers the result of the call with which a context left when it becomes
 * current again. Called right after a switch, by the thread that is now in the
 * context. The functions return the value that this call returns.
 */
#ifndef SHAI_DELIVER_H
#define SHAI_DELIVER_H

#include "context.h"

/* After a switch: an event, and who may be switched back to. */
int lwc_deliver_switch(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct lwc_message *message);

/* From its monitor, to a context whose call was redirected: the outcome of the
 * call. */
int lwc_deliver_result(struct thread *td, const struct lwc_message *message);

/* To a monitor: another context's redirected call. */
int lwc_deliver_redirection(struct thread *td, struct lwc_process *process,
    struct lwc_context *source, const struct lwc_event *event);

#endif
