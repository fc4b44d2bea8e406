/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory that the sessions of a sealed worker use: nothing can be mapped later.
 */
#ifndef SHAI_LINUX_MEMORY_H
#define SHAI_LINUX_MEMORY_H

/*
 * Gives the heap and the stack the room that shai_reserve asked for, and takes from the
 * stack what is beyond it, since every page is restored after each session. A page without
 * permissions below the stack then keeps it from growing. Returns 0, or -1 if the memory is
 * not there.
 */
int shai_memory_reserve(void);

/* Lets the stack of a worker that is not sealed after all grow again. */
void shai_memory_release(void);

#endif
