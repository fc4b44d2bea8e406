/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What all contexts of a process share, because no switch exchanges it: timers,
 * limits, priorities, names, counts of use, signals that are pending. A
 * monitored context must not change it, for contexts after it would find what
 * it left, nor read what others left. ../tests/state/fields.txt says of every
 * field of thread and process why it is exchanged, refused here, or need be
 * neither.
 */
#ifndef SHAI_SHARED_STATE_H
#define SHAI_SHARED_STATE_H

#include <sys/param.h>
#include <sys/proc.h>

/*
 * Reports whether a call of the current context, with its arguments, concerns
 * what all contexts of the process share. The thread is the current one.
 */
bool shared_state_call(
    struct thread *td, int number, const syscallarg_t *arguments);

#endif
