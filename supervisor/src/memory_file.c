/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int
memory_file_to_read(int file)
{
	const struct open_how how = {.flags = O_RDONLY | O_NOATIME | O_CLOEXEC};
	char place[32];
	int opened, error;

	(void)snprintf(place, sizeof(place), "/proc/self/fd/%d", file);
	opened = (int)syscall(SYS_openat2, AT_FDCWD, place, &how, sizeof(how));
	error = errno;
	(void)close(file);
	errno = error;
	return opened;
}
