/* SPDX-License-Identifier: BSD-2-Clause */
#include "parent.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shai.h"

bool
has_supervisor(void)
{
	return shai_mode() != SHAI_MODE_BASELINE;
}

bool
end_with_parent(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == parent;
}
