/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One file in a transfer: what arrives is decided by which file it is and
 * whether it is read or written, and by nothing else that a sender could
 * choose.
 */
#ifndef SHAI_ITEM_H
#define SHAI_ITEM_H

#include "context.h"

struct item {
	struct file *file; /* opened for the transfer; NULL: none */
	struct shai_conduit conduit;
};

/*
 * Opens the file of a descriptor again for a transfer, with the credentials
 * that it was opened with. Fails with EBADF, EOPNOTSUPP (not a regular file, or
 * opened to execute or to name it), ENOTCAPABLE (it has less than the rights
 * that a receiver gets), or what opening fails with.
 */
int item_take(struct thread *td, int descriptor, struct item *item);

/* Gives the receiver a descriptor of the file, closed on execve(2). */
int item_install(struct thread *td, const struct item *item, int *descriptor);

void item_drop(struct thread *td, struct item *item);

#endif
