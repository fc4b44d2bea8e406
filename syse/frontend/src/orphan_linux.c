/* SPDX-License-Identifier: BSD-2-Clause */
#include "orphan.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

bool
end_with_parent(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == parent;
}
