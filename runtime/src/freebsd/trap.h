/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the kernel refuses in capability mode, it signals (SIGTRAP, after
 * PROC_TRAPCAP); the handler asks somebody and finishes the call with the answer.
 * A call that nobody allows, or that cannot be asked about, stays refused.
 *
 * The program must not handle or block SIGTRAP: refused calls would then kill it.
 */
#ifndef SHAI_TRAP_H
#define SHAI_TRAP_H

/* Who is asked. */
enum shai_trap_asks {
	SHAI_TRAP_ASKS_NOBODY, /* every refused call stays refused */
	SHAI_TRAP_ASKS_SANDBOX,
	SHAI_TRAP_ASKS_STUB
};

/* Installs the handler and has refused calls signalled. Returns 0, or -1 with errno. */
int shai_trap_install(void);

void shai_trap_ask(enum shai_trap_asks who);

#endif
