/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One implementation per operating system: orphan_<system>.c.
 */
#ifndef SYSE_ORPHAN_H
#define SYSE_ORPHAN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Asks the kernel to kill this process when the parent that forked it ends. If a
 * sandbox refuses that, its monitor ends the processes that the parent leaves.
 * Returns false if the parent has ended already.
 */
bool end_with_parent(pid_t parent);

#endif
