/* SPDX-License-Identifier: BSD-2-Clause */
#include "orphan.h"

#include <signal.h>
#include <sys/procctl.h>

void
end_with_parent(void)
{
	int signal_number = SIGKILL;

	(void)procctl(P_PID, 0, PROC_PDEATHSIG_CTL, &signal_number);
}
