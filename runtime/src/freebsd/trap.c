/* SPDX-License-Identifier: BSD-2-Clause */
#include "trap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ask.h"
#include "machine.h"
#include "records.h"
#include "registration.h"
#include "trap_write.h"
#include "workers.h"

static volatile enum shai_trap_asks asks = SHAI_TRAP_ASKS_NOBODY;
static _Thread_local volatile sig_atomic_t handling; /* refused calls of the handler stay refused */

/*
 * Opens a path beneath a capability of the process. Returns -1 if there is none, or
 * if the capability does not allow the open.
 */
static int
open_natively(const char *path, int flags, uint32_t mode, bool *refused)
{
	char normal[SHAI_REQUEST_PATH_MAX];
	const struct shai_capability *capability = NULL;
	const char *rest;
	int descriptor;

	*refused = true;
	if (path[0] == '/' && shai_path_normalise(path, normal, sizeof(normal)) == 0)
		capability = shai_table_find(shai_table_current(), normal, &rest);
	if (capability == NULL)
		return -1;
	if (capability->kind != SHAI_KIND_DIRECTORY) {
		*refused = false;
		return capability->number; /* the path of a pipe or channel is its number */
	}
	descriptor = (int)syscall(SYS_openat, capability->number, rest, flags | O_CLOEXEC, mode);
	*refused = descriptor < 0 && (errno == ENOTCAPABLE || errno == ECAPMODE);
	return descriptor;
}

/* Opens the file for a call. Returns a descriptor, or -1 with errno. */
static int
open_for(const struct shai_refused_call *call)
{
	int socket = asks == SHAI_TRAP_ASKS_STUB ? SHAI_FD_MONITOR : SHAI_FD_REQUESTS;
	char path[SHAI_REQUEST_PATH_MAX];
	enum shai_base base;
	bool refused;
	int descriptor;

	base = shai_call_base(call->descriptor, (const char *)(uintptr_t)call->path, path);
	if (base == SHAI_BASE_OUTSIDE) {
		errno = EACCES;
		return -1;
	}
	descriptor = open_natively(path, call->flags, call->mode, &refused);
	if (!refused)
		return descriptor;
	return shai_ask_path(socket, base == SHAI_BASE_DIRECTORY ? call->descriptor : -1, path,
	    call->flags, call->mode);
}

/* Finishes the call with the open file. Returns the call's result, or -1 with errno. */
static long
finish(const struct shai_refused_call *call, int descriptor)
{
	long result;
	int error;

	if (descriptor < 0)
		return -1;
	if (call->kind == SHAI_CALL_OPEN) {
		if ((call->flags & O_CLOEXEC) == 0 && descriptor >= SHAI_FD_RESERVED_END)
			(void)fcntl(descriptor, F_SETFD, 0);
		return descriptor;
	}
	if (call->kind == SHAI_CALL_STATUS)
		result = fstat(descriptor, (struct stat *)(uintptr_t)call->result);
	else
		result = shai_access_descriptor(descriptor, call->mode);
	error = errno;
	if (descriptor >= SHAI_FD_RESERVED_END)
		(void)close(descriptor);
	errno = error;
	return result;
}

static void
answer(ucontext_t *context, int number, int error)
{
	uint64_t arguments[SHAI_CALL_ARGUMENTS];
	struct shai_refused_call call;
	long result;

	if (!shai_machine_arguments(context, number, error, arguments))
		return;
	if (shai_workers_wait(number, arguments, &result))
		;
	else if (!shai_refused_call(number, arguments, &call))
		return;
	else if (call.kind != SHAI_CALL_WRITE)
		result = finish(&call, open_for(&call));
	else if (asks == SHAI_TRAP_ASKS_STUB)
		result = shai_trap_write_by_stub(number, arguments);
	else
		result = shai_trap_write(number, arguments);
	shai_machine_return(context, result, errno);
}

static void
handle(int signal_number, siginfo_t *information, void *context)
{
	int error = errno;

	if (information->si_code != TRAP_CAP) {
		/* A breakpoint: behave as without a handler. */
		(void)signal(signal_number, SIG_DFL);
		(void)raise(signal_number);
	} else if (asks != SHAI_TRAP_ASKS_NOBODY && !handling) {
		handling = 1;
		answer(context, information->si_syscall, information->si_errno);
		handling = 0;
	}
	errno = error;
}

int
shai_trap_install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handle;
	/*
	 * The handler must not block its own signal: a refused call in it would then
	 * kill the process.
	 */
	action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGTRAP, &action, NULL) != 0)
		return -1;
	asks = SHAI_TRAP_ASKS_SANDBOX;
	return shai_ask_plainly(SHAI_REQUEST_TRAPS);
}

void
shai_trap_ask(enum shai_trap_asks who)
{
	asks = who;
}
