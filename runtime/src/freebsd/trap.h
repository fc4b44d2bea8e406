/* SPDX-License-Identifier: BSD-2-Clause
 *
 * In capability mode the kernel signals each call that it refuses (SIGTRAP, after
 * PROC_TRAPCAP). The handler asks the sandbox or the stub, and finishes the call with
 * the answer. A call stays refused if it is not allowed, or if it is of a kind that
 * cannot be asked about.
 *
 * The program must not handle or block SIGTRAP: refused calls would then kill it.
 */
#ifndef SHAI_TRAP_H
#define SHAI_TRAP_H

/* Whom the handler asks. */
enum shai_trap_asks {
	SHAI_TRAP_ASKS_NOBODY, /* every refused call stays refused */
	SHAI_TRAP_ASKS_SANDBOX,
	SHAI_TRAP_ASKS_STUB
};

/*
 * Installs the handler and asks for signals of refused calls. Returns 0, or -1 with
 * errno.
 */
int shai_trap_install(void);

void shai_trap_ask(enum shai_trap_asks who);

#endif
