/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the supervisor gives up before it reads the first byte of a task.
 */
#ifndef SUPERVISOR_LOCKDOWN_H
#define SUPERVISOR_LOCKDOWN_H

/*
 * Keeps its memory from core dumps and tracers, drops all capabilities but those that the
 * supervisor uses, forbids new privileges, and allows itself only the system calls of its
 * loop: any other one ends the process.
 * Returns NULL, or what failed, with errno.
 */
const char *lockdown(void);

#endif
