/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that forks and ends, as its child does, and so on. Each lives for a shorter time than it takes to list
 * processes, but long enough for whoever inherits them to wait for them.
 */
#define _DEFAULT_SOURCE
#include <unistd.h>

int
main(void)
{
	for (;;) {
		usleep(1000);
		if (fork() > 0)
			return 0;
	}
}
