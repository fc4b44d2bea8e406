/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that forks and ends, as its child does, and so on. Each lives for a shorter time than it takes to list
 * processes.
 */
#include <unistd.h>

int
main(void)
{
	for (;;)
		if (fork() > 0)
			return 0;
}
