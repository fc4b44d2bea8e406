/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where the kernel's own interfaces differ between 14 and 15.
 */
#ifndef SHAI_COMPAT_H
#define SHAI_COMPAT_H

#include <sys/param.h>
#include <sys/systm.h>

#include <sys/filedesc.h>
#include <sys/sysent.h>

/*
 * syscall_thread_enter() was given a pointer to a pointer, so that it can put
 * another entry in place of one that is going. That was also merged to 14, so the
 * version does not tell; the declaration does. The casts are to what it is
 * declared as already.
 */
#define ENTER_BY_ENTRY(td, entry)                                                                  \
	((int (*)(struct thread *, struct sysent *))(void *)syscall_thread_enter)((td), (entry))
#define ENTER_BY_REFERENCE(td, entry)                                                              \
	((int (*)(struct thread *, struct sysent **))(void *)syscall_thread_enter)((td), &(entry))
#define ENTER_MODULE_CALL(td, entry)                                                               \
	_Generic(&syscall_thread_enter, int (*)(struct thread *, struct sysent *)                  \
		 : ENTER_BY_ENTRY(td, entry), int (*)(struct thread *, struct sysent **)           \
		 : ENTER_BY_REFERENCE(td, entry))

/* A descriptor's file and Capsicum rights, referenced and copied. */
static inline int
get_with_capabilities(
    struct thread *td, int descriptor, struct file **file, struct filecaps *capabilities)
{
#if __FreeBSD_version >= 1500000
	return (fget_cap(td, descriptor, &cap_no_rights, NULL, file, capabilities));
#else
	return (fget_cap(td, descriptor, &cap_no_rights, file, capabilities));
#endif
}

#endif
