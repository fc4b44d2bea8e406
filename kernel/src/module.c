/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shai.ko: loading, unloading, and the numbers of its system calls.
 *
 * Unloading is refused while there is a context or a channel, or a process with
 * one of our vectors. The kernel waits for calls in progress when they are
 * deregistered. After that, a thread that has just given its vector back may
 * still execute our last instructions. quiesce_all_cpus() waits until every
 * processor has been idle once, so that no such thread is left. Programs that
 * compute can make this wait long, so a signal ends it.
 *
 * The linker checks the kernel's major version. Structures that we read change
 * in minor releases too, so a module that was built for another one does not
 * load.
 */
#include "context.h"

#include <bsm/audit_kevents.h>

#include <sys/jail.h>
#include <sys/kernel.h>
#include <sys/module.h>
#include <sys/smp.h>
#include <sys/sx.h>
#include <sys/sysctl.h>

#include "arguments.h"
#include "treatment.h"

static unsigned
    allow_shai; /* the flag of the jail parameter; constant once loaded */

/* Outside of jails always; in a jail, if the jail has allow.shai. */
static bool
is_allowed(struct thread *td)
{
	return (prison_allow(td->td_ucred, allow_shai));
}

/*
 * Programs and the doctor look for the module by this variable. In a jail where
 * its calls are not allowed it cannot be read.
 */
static int
read_version(SYSCTL_HANDLER_ARGS)
{
	static const int version = LWC_VERSION;

	(void)arg1, (void)arg2;
	if (!is_allowed(req->td))
		return (EPERM);
	return (SYSCTL_OUT(req, &version, sizeof(version)));
}

SYSCTL_DECL(_shai);
/* Readable in capability mode, in which tasks look them up. */
SYSCTL_PROC(_shai, OID_AUTO, version,
    CTLTYPE_INT | CTLFLAG_RD | CTLFLAG_CAPRD | CTLFLAG_MPSAFE, NULL, 0,
    read_version, "I", "Version of the module");
static SYSCTL_NODE(_shai, OID_AUTO, syscall, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL,
    "Numbers of the system calls");

struct call {
	int number;
	bool registered;
	struct sysent entry;
	struct sysent replaced;
};

#define CALL(name)                                                             \
	static int enter_##name(struct thread *td, void *arguments)            \
	{                                                                      \
		return (is_allowed(td) ? sys_##name(td, arguments) : EPERM);   \
	}                                                                      \
	static struct call name##_call = {.number = NO_SYSCALL,                \
	    .entry = {                                                         \
		.sy_narg = sizeof(struct name##_args) / sizeof(register_t),    \
		.sy_call = enter_##name,                                       \
		.sy_auevent = AUE_NULL,                                        \
		.sy_flags = SYF_CAPENABLED,                                    \
	    }};                                                                \
	SYSCTL_INT(_shai_syscall, OID_AUTO, name, CTLFLAG_RD | CTLFLAG_CAPRD,  \
	    &name##_call.number, 0, "")

CALL(lwc_create);
CALL(lwc_switch);
CALL(lwc_restrict);
CALL(lwc_overlay);
CALL(lwc_syscall);
CALL(shai_grant);
CALL(shai_channel);
CALL(shai_send);
CALL(shai_receive);

static struct call *const calls[] = {&lwc_create_call, &lwc_switch_call,
    &lwc_restrict_call, &lwc_overlay_call, &lwc_syscall_call, &shai_grant_call,
    &shai_channel_call, &shai_send_call, &shai_receive_call};

static void
deregister_calls(void)
{
	for (u_int i = 0; i < nitems(calls); i++) {
		if (!calls[i]->registered)
			continue;
		treatment_register(calls[i]->number, false);
		(void)kern_syscall_deregister(
		    sysent, calls[i]->number, &calls[i]->replaced);
		calls[i]->registered = false;
		calls[i]->number = NO_SYSCALL;
	}
}

static int
register_calls(void)
{
	int error;

	for (u_int i = 0; i < nitems(calls); i++) {
		error = kern_syscall_register(sysent, &calls[i]->number,
		    &calls[i]->entry, &calls[i]->replaced, 0);
		if (error != 0) {
			deregister_calls();
			return (error);
		}
		treatment_register(calls[i]->number, true);
		calls[i]->registered = true;
	}
	return (0);
}

static bool
any_process_installed(void)
{
	struct proc *p;
	bool found = false;

	sx_slock(&allproc_lock);
	FOREACH_PROC_IN_SYSTEM(p) {
		found =
		    found || (p->p_sysent != NULL && lwc_vectors_installed(p));
	}
	sx_sunlock(&allproc_lock);
	return (found);
}

static bool loaded;

static void
register_again(void)
{
	int error = register_calls();

	if (error != 0)
		printf("shai: cannot register the system calls again: %d\n",
		    error);
}

static int
unload(void)
{
	/* The kernel also asks for this after a load that failed. */
	if (!loaded)
		return (0);
	if (shai_in_use() || any_process_installed())
		return (EBUSY);
	/* From here on no call begins, and the calls that had begun have ended.
	 */
	deregister_calls();
	if (shai_in_use() || any_process_installed()) {
		register_again();
		return (EBUSY);
	}
	if (quiesce_all_cpus("shaiun", PCATCH) != 0) {
		register_again();
		return (EINTR);
	}
	lwc_vectors_fini();
	loaded = false;
	return (0);
}

/*
 * Compares the options that the module was built with to the kernel's. Without
 * RACCT here the kernel would no longer count what a process uses when it
 * exchanges its contexts.
 */
static int
check_options(void)
{
#ifdef RACCT
	const bool module = true;
#else
	const bool module = false;
#endif
	bool enabled;
	size_t size = sizeof(enabled);
	bool kernel = kernel_sysctlbyname(curthread, "kern.racct.enable",
			  &enabled, &size, NULL, 0, NULL, 0) == 0;

	if (kernel == module)
		return (0);
	printf("shai: the kernel is built %s RACCT, the module %s: build the "
	       "module with the"
	       " kernel's options (KERNBUILDDIR)\n",
	    kernel ? "with" : "without", module ? "with it" : "without");
	return (ENOEXEC);
}

static int
check_release(void)
{
	if (rules_same_release(__FreeBSD_version, osreldate))
		return (0);
	printf(
	    "shai: the module was built for FreeBSD %d, and this kernel is %d; "
	    "build the module for this release\n",
	    __FreeBSD_version, osreldate);
	return (ENOEXEC);
}

static int
load(void)
{
	int error;

	error = check_release();
	if (error == 0)
		error = check_options();
	if (error != 0)
		return (error);
	allow_shai = prison_add_allow(NULL, "shai", NULL,
	    "Jail may use light-weight contexts and descriptor channels");
	if (allow_shai == 0)
		return (ENOSPC);
	lwc_limits_init();
	lwc_redirect_init();
	error = register_calls();
	if (error != 0)
		lwc_vectors_fini();
	loaded = error == 0;
	return (error);
}

static int
handle(module_t module, int what, void *argument)
{
	(void)module, (void)argument;
	switch (what) {
	case MOD_LOAD:
		return (load());
	case MOD_QUIESCE:
		return (shai_in_use() || any_process_installed() ? EBUSY : 0);
	case MOD_UNLOAD:
		return (unload());
	default:
		return (EOPNOTSUPP);
	}
}

static moduledata_t description = {"shai", handle, NULL};

DECLARE_MODULE(shai, description, SI_SUB_SYSCALLS, SI_ORDER_MIDDLE);
MODULE_VERSION(shai, LWC_VERSION);
