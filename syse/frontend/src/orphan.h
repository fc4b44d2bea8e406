/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One implementation per operating system: orphan_<system>.c.
 */
#ifndef SYSE_ORPHAN_H
#define SYSE_ORPHAN_H

/* Has the kernel kill this process when its parent ends. Failure is not reported. */
void end_with_parent(void);

#endif
