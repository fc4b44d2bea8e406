/* SPDX-License-Identifier: BSD-2-Clause */
#include "workers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int queue = -1;
static volatile int watched;

int
shai_workers_add(pid_t child)
{
	struct kevent change;

	if (queue < 0)
		queue = kqueue();
	if (queue < 0 || fcntl(queue, F_SETFD, FD_CLOEXEC) != 0)
		return -1;
	EV_SET(&change, child, EVFILT_PROC, EV_ADD | EV_ONESHOT, NOTE_EXIT, 0, NULL);
	if (kevent(queue, &change, 1, NULL, 0, NULL) != 0)
		return -1;
	watched++;
	return 0;
}

void
shai_workers_forget(void)
{
	queue = -1;
	watched = 0;
}

static long
wait_any(uint64_t status, bool block)
{
	struct timespec now = {0, 0};
	struct kevent event;
	int count = -1;

	if (watched == 0)
		errno = ECHILD;
	else
		count = kevent(queue, NULL, 0, &event, 1, block ? NULL : &now);
	if (count <= 0)
		return count;
	watched--;
	if (status != 0)
		*(int *)(uintptr_t)status = (int)event.data;
	return (long)event.ident;
}

bool
shai_workers_wait(int number, const uint64_t arguments[SHAI_CALL_ARGUMENTS], long *result)
{
	if (number != SYS_wait4 || (int)arguments[0] != WAIT_ANY ||
	    ((int)arguments[2] & ~WNOHANG) != 0)
		return false;
	*result = wait_any(arguments[1], ((int)arguments[2] & WNOHANG) == 0);
	if (arguments[3] != 0 && *result > 0)
		memset((void *)(uintptr_t)arguments[3], 0, sizeof(struct rusage));
	return true;
}
