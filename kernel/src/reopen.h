/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opening a file again that is open already.
 */
#ifndef SHAI_REOPEN_H
#define SHAI_REOPEN_H

#include "context.h"

/*
 * Opens a regular file or directory again, with the credentials: the same
 * vnode, but an offset and locks of its own. The flags are of f_flag. Returns a
 * file with one reference. Fails with EOPNOTSUPP for another kind of file.
 */
int reopen_file(struct thread *td, const struct file *old, u_int flags,
    struct ucred *credentials, struct file **out);

#endif
