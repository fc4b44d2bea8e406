/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls of shai.ko, as lwc(2) describes them; -1 with errno.
 */
#ifndef SHAI_CONTEXTS_H
#define SHAI_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lwc.h"

/*
 * Reports whether the module is loaded, in the version of lwc.h, and looks up the
 * numbers of its calls.
 */
bool contexts_find(void);

int lwc_create(const struct lwc_spec *spec, struct lwc_event *event);
int lwc_switch(int context, const struct lwc_message *message, struct lwc_event *event);

/* Makes a call on behalf of the context whose call was redirected. */
long lwc_on_behalf(int resources, int number, const uint64_t arguments[LWC_ARGUMENTS]);

#endif
