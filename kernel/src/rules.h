/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What needs no kernel: whether arguments are well formed, and how a context's
 * state may change. Functions return 0 or an errno; they hold no locks and keep
 * nothing. Compiled into the module and into user-space tests.
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

/* Makes a step, or returns EBUSY (CURRENT, but need not be) or ESRCH and changes nothing. */
int rules_step(enum lwc_state *state, enum lwc_step step);

/* Whether a context may be copied from: it stands still, outside a redirected call. */
bool rules_is_source(enum lwc_state state);

/* The fixed part of a specification; its arrays are checked element by element. */
int rules_check_spec(const struct lwc_spec *spec);

/* A range lies in [minimum, maximum), is aligned to page, and has a mode. */
int rules_check_range(
    const struct lwc_range *range, uint64_t minimum, uint64_t maximum, uint64_t page);

int rules_check_descriptors(const struct lwc_descriptors *descriptors);
int rules_check_message(const struct lwc_message *message);
int rules_check_restriction(int descriptor, const struct lwc_restriction *restriction);

/* Both ranges of an overlay, each within the limits. */
int rules_check_overlay(
    const struct lwc_overlay *overlay, uint64_t minimum, uint64_t maximum, uint64_t page);

int rules_check_conduit(const struct shai_conduit *conduit);

/* Whether a call's number is in a set; a number outside the set's range is. */
bool rules_call_in(const uint64_t words[LWC_CALL_WORDS], int number);

#endif
