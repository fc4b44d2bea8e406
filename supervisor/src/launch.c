/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shai_wire.h"

#define PARKED 512 /* above every number that is filled */
#define INHERITED_MAX 256

/*
 * What the launcher gets, as numbers of this process: the plan, the status pipe, its
 * control socket, the task's descriptors, the added one; and its limit of open files, which may be
 * lower than the numbers that are used here.
 */
struct inheritance {
	int source[INHERITED_MAX];
	int count;
	struct rlimit files; /* how many it may have open */
};

static struct inheritance
inheritance_of(int count, int control, int added)
{
	struct inheritance result = {.count = 4 + count};

	result.source[0] = LAUNCH_PLAN_FD;
	result.source[1] = LAUNCH_STATUS_FD;
	result.source[2] = control;
	for (int i = 0; i < count; i++)
		result.source[3 + i] = LAUNCH_FIRST_FD + i;
	result.source[3 + count] = added;
	return result;
}

/*
 * Puts what is inherited above the reserved numbers, and fills those: the launcher must
 * find them occupied from its first instruction on. Everything else is closed by exec.
 */
static int
fill(const struct inheritance *from)
{
	int parked[INHERITED_MAX];

	for (int i = 0; i < from->count; i++)
		if ((parked[i] = fcntl(from->source[i], F_DUPFD_CLOEXEC, PARKED)) < 0)
			return -1;
	for (int number = SHAI_FD_MONITOR; number < SHAI_FD_RESERVED_END; number++)
		if (dup2(STDIN_FILENO, number) < 0)
			return -1;
	for (int i = 0; i < from->count; i++)
		if (dup2(parked[i], SHAI_FD_RESERVED_END + i) < 0)
			return -1;
	return close_range(
	    (unsigned)(SHAI_FD_RESERVED_END + from->count), ~0u, CLOSE_RANGE_CLOEXEC);
}

/* Becomes the launcher, in the child. Returns what failed. */
static const char *
become(const char *program, const struct inheritance *from, pid_t parent)
{
	static char name[] = "shai-sandbox-launcher";
	char *arguments[] = {name, name, NULL};
	sigset_t none;

	if (setsid() < 0)
		return "make a session";
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		return "tie it to the supervisor";
	if (fill(from) != 0 || setrlimit(RLIMIT_NOFILE, &from->files) != 0)
		return "place its descriptors";
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execve(program, arguments, environ);
	return "execute the monitor's program";
}

static _Noreturn void
child(const char *program, const struct inheritance *from, pid_t parent)
{
	int status = fcntl(LAUNCH_STATUS_FD, F_DUPFD_CLOEXEC, PARKED + INHERITED_MAX);
	const char *problem = become(program, from, parent);

	(void)dprintf(status, "supervisor: start the launcher: %s: %m", problem);
	_exit(127);
}

static int
raise_limit(struct rlimit *former, size_t *files_max)
{
	struct rlimit highest;

	if (getrlimit(RLIMIT_NOFILE, former) != 0)
		return -1;
	highest = (struct rlimit){.rlim_cur = former->rlim_max, .rlim_max = former->rlim_max};
	*files_max = highest.rlim_cur;
	return setrlimit(RLIMIT_NOFILE, &highest);
}

const char *
launch_start(const char *program, int count, int added, struct launch *launch)
{
	struct inheritance from;
	pid_t parent = getpid();
	int ends[2];

	if (count < 0 || count > INHERITED_MAX - 4) {
		errno = E2BIG;
		return "count its descriptors";
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return "make its control socket";
	from = inheritance_of(count, ends[1], added);
	if (raise_limit(&from.files, &launch->files_max) != 0)
		return "raise its limit of open files";
	launch->pid = fork();
	if (launch->pid == 0)
		child(program, &from, parent);
	if (launch->pid < 0)
		return "fork";
	(void)close(ends[1]);
	(void)close(LAUNCH_PLAN_FD);
	(void)close(LAUNCH_STATUS_FD);
	if (count > 0)
		(void)close_range(LAUNCH_FIRST_FD, (unsigned)(LAUNCH_FIRST_FD + count - 1), 0);
	launch->control = ends[0];
	return NULL;
}
