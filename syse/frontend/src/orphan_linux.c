/* SPDX-License-Identifier: BSD-2-Clause */
#include "orphan.h"

#include <signal.h>
#include <sys/prctl.h>

void
end_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}
