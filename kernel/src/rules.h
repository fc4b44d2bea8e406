/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parts that need no kernel: checks of arguments, and the states of a
 * context. Functions return 0 or an errno; they hold no locks and keep no
 * state. Compiled into the module and into user-space tests.
 */
#ifndef SHAI_RULES_H
#define SHAI_RULES_H

#include "lwc.h"

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/systm.h>

#include <sys/errno.h>
#include <sys/libkern.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#endif

/*
 * The life of a context:
 *
 *	CREATED --enter--> CURRENT --leave--> SUSPENDED --enter--> CURRENT
 *	                           --trap---> TRAPPED   --enter--> CURRENT
 *	CREATED, SUSPENDED, TRAPPED --discard--> DEAD
 *
 * At most one context of a process is CURRENT: the one whose resources the
 * process has, and which therefore cannot be discarded.
 */
enum lwc_state {
	LWC_STATE_CREATED,
	LWC_STATE_CURRENT,
	LWC_STATE_SUSPENDED,
	LWC_STATE_TRAPPED,
	LWC_STATE_DEAD
};

enum lwc_step {
	LWC_STEP_ENTER,
	LWC_STEP_LEAVE,
	LWC_STEP_TRAP,
	LWC_STEP_DISCARD
};

/*
 * Makes a step. Or changes nothing and returns EBUSY (CURRENT, but must not be)
 * or ESRCH.
 */
int rules_step(enum lwc_state *state, enum lwc_step step);

/*
 * Reports whether a context may be copied: it must be suspended, outside a
 * redirected call.
 */
bool rules_is_source(enum lwc_state state);

/*
 * Checks the fixed part of a specification. Its arrays are checked element by
 * element.
 */
int rules_check_spec(const struct lwc_spec *spec);

/* Checks that a range lies in [minimum, maximum), is aligned to page, and has a
 * mode. */
int rules_check_range(const struct lwc_range *range, uint64_t minimum,
    uint64_t maximum, uint64_t page);

int rules_check_descriptors(const struct lwc_descriptors *descriptors);
int rules_check_message(const struct lwc_message *message);
int rules_check_restriction(
    int descriptor, const struct lwc_restriction *restriction);

/* Checks both ranges of an overlay, each against its limits. */
int rules_check_overlay(const struct lwc_overlay *overlay, uint64_t minimum,
    uint64_t maximum, uint64_t page);

int rules_check_conduit(const struct shai_conduit *conduit);

/*
 * Reports whether a context may grant conduits to another or to itself.
 * Granting is naming files by number, wherever they are, so nobody does it who
 * is monitored: it could grant to its own copy. In capability mode (confined) a
 * context grants only to contexts that it is the monitor of: what they receive
 * is its decision, and never to itself, since nobody is its own monitor.
 */
bool rules_may_grant(bool monitored, bool confined, bool monitor_of_target);

/*
 * Reports whether two numbers of FreeBSD's version are of the same minor
 * release, in which the kernel's structures stay as they are: 1403000 and
 * 1403503 are, 1402000 is not.
 */
bool rules_same_release(int version, int other);

/*
 * Reports whether a call's number is in a set. A number outside the set's range
 * counts as in it.
 */
bool rules_call_in(const uint64_t words[LWC_CALL_WORDS], int number);

#endif
