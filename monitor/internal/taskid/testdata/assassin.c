/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A process that sends SIGKILL to every thread of another one, for ever.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int
main(int count, char **arguments)
{
	int pid = count > 1 ? atoi(arguments[1]) : 0, thread;
	char name[64];
	struct dirent *entry;
	DIR *threads;

	snprintf(name, sizeof name, "/proc/%d/task", pid);
	if ((threads = opendir(name)) == NULL)
		return 1;
	puts("ready");
	fflush(stdout);
	for (;; rewinddir(threads))
		while ((entry = readdir(threads)) != NULL)
			if ((thread = atoi(entry->d_name)) > 0)
				syscall(SYS_tgkill, pid, thread, SIGKILL);
}
