/* SPDX-License-Identifier: BSD-2-Clause */
#include "parent.h"

#include <signal.h>
#include <sys/procctl.h>
#include <unistd.h>

bool
has_supervisor(void)
{
	return false;
}

bool
end_with_parent(pid_t parent)
{
	int signal_number = SIGKILL;

	/* In capability mode a session is a child of its stub and ends with it. */
	if (procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &signal_number) != 0)
		return true;
	return getppid() == parent;
}
