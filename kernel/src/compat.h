/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Differences between the kernel interfaces of FreeBSD 14 and 15.
 */
#ifndef SHAI_COMPAT_H
#define SHAI_COMPAT_H

#include <sys/param.h>
#include <sys/systm.h>

#include <sys/filedesc.h>
#include <sys/resourcevar.h>
#include <sys/sysent.h>

/*
 * Older versions of syscall_thread_enter() take a pointer to a pointer, so that
 * the call can replace an entry that is going away. The change was also merged
 * to 14, so the macro looks at the declaration instead of the version. The
 * casts are to the declared type.
 */
#define ENTER_BY_ENTRY(td, entry)                                              \
	((int (*)(struct thread *, struct sysent *))(                          \
	    void *)syscall_thread_enter)((td), (entry))
#define ENTER_BY_REFERENCE(td, entry)                                          \
	((int (*)(struct thread *, struct sysent **))(                         \
	    void *)syscall_thread_enter)((td), &(entry))
#define ENTER_MODULE_CALL(td, entry)                                           \
	_Generic(                                                              \
	    &syscall_thread_enter, int (*)(struct thread *, struct sysent *)   \
	    : ENTER_BY_ENTRY(td, entry),                                       \
	    int (*)(struct thread *, struct sysent **)                         \
	    : ENTER_BY_REFERENCE(td, entry))

/*
 * Whether a debugger has the thread make a call (PT_SC_REMOTE, since 15), in
 * the middle of a stop.
 */
#ifdef TDB_SCREMOTEREQ
#define IS_DEBUGGERS_CALL(td) (((td)->td_dbgflags & TDB_SCREMOTEREQ) != 0)
#else
#define IS_DEBUGGERS_CALL(td) false
#endif

/* A call from which the kernel does not return to its caller, but to the
 * caller's. GCC does so without being told. */
#if __has_attribute(musttail)
#define RETURN_BY __attribute__((musttail)) return
#else
#define RETURN_BY return
#endif

/* Gets a descriptor's file, with a reference, and a copy of its Capsicum
 * rights. */
static inline int
get_with_capabilities(struct thread *td, int descriptor, struct file **file,
    struct filecaps *capabilities)
{
#if __FreeBSD_version >= 1500000
	return (
	    fget_cap(td, descriptor, &cap_no_rights, NULL, file, capabilities));
#else
	return (fget_cap(td, descriptor, &cap_no_rights, file, capabilities));
#endif
}

/*
 * Whether a process may take credentials as its own. Nobody else may use them
 * (cr_users); FreeBSD 15 also requires that nobody else refers to them, as open
 * files do. And since 15, proc_set_cred() itself counts the processes of real
 * users.
 */
#if __FreeBSD_version >= 1500000
#define CREDENTIALS_ARE_PRIVATE(credentials)                                   \
	((credentials)->cr_users == 0 && (credentials)->cr_ref == 1)
#define COUNT_PROCESS(old, new) ((void)(old), (void)(new))
#else
#define CREDENTIALS_ARE_PRIVATE(credentials) ((credentials)->cr_users == 0)
#define COUNT_PROCESS(old, new)                                                \
	do {                                                                   \
		if ((old)->cr_ruidinfo != (new)->cr_ruidinfo) {                \
			(void)chgproccnt((new)->cr_ruidinfo, 1, 0);            \
			(void)chgproccnt((old)->cr_ruidinfo, -1, 0);           \
		}                                                              \
	} while (0)
#endif

#endif
