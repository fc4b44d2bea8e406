/* SPDX-License-Identifier: BSD-2-Clause */
#include "treatment.h"

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/systm.h>
#else
#include <stdint.h>
#endif

#include "lwc.h"
#include "treatment_list.h"

#define AS_NATIVE(number, name) [number] = TREAT_NATIVE,
#define AS_OWN(number, name) [number] = TREAT_OWN,
#define AS_SHARED(number, name) [number] = TREAT_SHARED,
#define AS_FORK(number, name) [number] = TREAT_FORK,
#define AS_EXECUTE(number, name) [number] = TREAT_EXECUTE,
#define AS_REFUSED(number, name) [number] = TREAT_REFUSE,

/* Constant while there is a process with contexts. */
static uint8_t treatments[LWC_CALLS_MAX] = {CALLS_NATIVE(AS_NATIVE)
	CALLS_OWN(AS_OWN) CALLS_SHARED(AS_SHARED) CALLS_FORK(AS_FORK)
	    CALLS_EXECUTE(AS_EXECUTE) CALLS_REFUSED(AS_REFUSED)};

enum treatment
treatment_of(int number)
{
	if (number < 0 || number >= LWC_CALLS_MAX)
		return (TREAT_UNKNOWN);
	return (treatments[number]);
}

void
treatment_register(int number, bool present)
{
	if (number >= 0 && number < LWC_CALLS_MAX)
		treatments[number] = present ? TREAT_OWN : TREAT_UNKNOWN;
}
