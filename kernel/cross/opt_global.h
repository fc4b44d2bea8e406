/* SPDX-License-Identifier: BSD-2-Clause
 *
 * In place of the options that a kernel's own build writes here. With the
 * assertions, so that they are compiled too.
 */
#define INVARIANTS 1
#define INVARIANT_SUPPORT 1
#define SMP 1
#define RACCT 1
#define AUDIT 1
