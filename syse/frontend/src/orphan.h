/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One implementation per operating system: orphan_<system>.c.
 */
#ifndef SYSE_ORPHAN_H
#define SYSE_ORPHAN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Has the kernel kill this process when the parent that forked it ends. Where a
 * sandbox refuses that, its monitor ends what the parent leaves. Returns false when
 * the parent has ended already.
 */
bool end_with_parent(pid_t parent);

#endif
