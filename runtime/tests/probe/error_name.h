/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of error numbers, for C libraries without strerrorname_np.
 */
#ifndef SHAI_TESTS_ERROR_NAME_H
#define SHAI_TESTS_ERROR_NAME_H

#include <errno.h>
#include <stddef.h>

#define NAMED(error)                                                                               \
	case error:                                                                                \
		return #error

/* The errors that a worker can get; others are "E?". */
static inline const char *
error_name(int error)
{
	switch (error) {
		NAMED(EPERM);
		NAMED(ENOENT);
		NAMED(EINTR);
		NAMED(EIO);
		NAMED(EBADF);
		NAMED(ECHILD);
		NAMED(EAGAIN);
		NAMED(ENOMEM);
		NAMED(EACCES);
		NAMED(EFAULT);
		NAMED(EBUSY);
		NAMED(EEXIST);
		NAMED(ENOTDIR);
		NAMED(EISDIR);
		NAMED(EINVAL);
		NAMED(EMFILE);
		NAMED(EPIPE);
		NAMED(EOPNOTSUPP);
		NAMED(ENOTSOCK);
		NAMED(EMSGSIZE);
		NAMED(ECONNABORTED);
		NAMED(ECONNRESET);
		NAMED(ENOTCONN);
		NAMED(ETIMEDOUT);
		NAMED(ELOOP);
		NAMED(ENAMETOOLONG);
		NAMED(ENOSYS);
		NAMED(EPROTO);
#ifdef ENOTCAPABLE
		NAMED(ENOTCAPABLE);
		NAMED(ECAPMODE);
#endif
	default:
		return "E?";
	}
}

#undef NAMED

#endif
