/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions of checks, and the signals that they leave or do not leave.
 */
#ifndef SESSION_H
#define SESSION_H

#include <sys/types.h>

#include <sys/signal.h>

#include "runtime.h"

/* How many signals have come to a handler that handle() has set. */
extern volatile int handled;

/* Returns a specification of a monitored context. */
struct lwc_spec session_spec(void);

/* Answers the calls of a context with their own errors, until it switches here. */
void run_session(int context);

/* Switches back from a session for good. */
_Noreturn void end_session(void);

sigset_t only(int number);

void block(int number);

/* Counts signals of a number from now on. */
void handle(int number);

void pause_for(long milliseconds);

#endif
