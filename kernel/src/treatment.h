/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What happens to a system call in a process with contexts: an allow-list over
 * the whole table of FreeBSD 14 and 15. A call that is not in it is refused.
 * Compiled into the module and into user-space tests, which compare the list
 * with the releases' headers.
 */
#ifndef SHAI_TREATMENT_H
#define SHAI_TREATMENT_H

#ifdef _KERNEL
#include <sys/types.h>
#else
#include <stdbool.h>
#endif

enum treatment {
	TREAT_UNKNOWN = 0, /* not in the list: refused */
	TREAT_NATIVE,  /* made as always, and also on behalf of another context
			*/
	TREAT_OWN,     /* made as always, on nobody's behalf: the thread's or
			  process's state */
	TREAT_SHARED,  /* likewise; a monitored context's goes to its monitor */
	TREAT_FORK,    /* makes a process */
	TREAT_EXECUTE, /* replaces the process's image */
	TREAT_REFUSE /* the kernel would use a context's memory or make threads
			later */
};

/* Returns the treatment of a number, whatever it is. */
enum treatment treatment_of(int number);

/*
 * Adds a call whose number was given out when the module was loaded (OWN), or
 * removes it. Only while no process has contexts.
 */
void treatment_register(int number, bool present);

#endif
