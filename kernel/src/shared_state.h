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

/*
 * Reports whether a call that is not shared_state_call() asks sysctl(3) for the
 * number of a name. It has to be made by shared_state_name_to_number(): the
 * kernel would read the variable's number again, from memory that may have
 * changed since.
 */
bool shared_state_is_name_to_number(int number, const syscallarg_t *arguments);

int shared_state_name_to_number(
    struct thread *td, const syscallarg_t *arguments);

#endif
