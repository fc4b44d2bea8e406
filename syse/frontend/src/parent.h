/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose children workers are. One implementation per operating system: parent_<system>.c.
 */
#ifndef SYSE_PARENT_H
#define SYSE_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Reports whether the monitor has a supervisor for this task, whose children the workers
 * are: shai_fork_worker then waits until one is wanted.
 */
bool has_supervisor(void);

/*
 * Asks the kernel to kill this process when the parent that forked it ends. If a
 * sandbox refuses that, its monitor ends the processes that the parent leaves.
 * Returns false if the parent has ended already.
 */
bool end_with_parent(pid_t parent);

#endif
