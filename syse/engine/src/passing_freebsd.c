/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The channels of shai.ko, shai(4). The kernel delivers to a receiver only what the
 * receiver was granted.
 */
#include "passing.h"

#include <sys/types.h>
/* sysctl.h needs the header above. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

/* Only channels of the module are files of no type. */
bool
passing_is(int channel)
{
	struct stat status;

	return fstat(channel, &status) == 0 && (status.st_mode & S_IFMT) == 0;
}

int
passing_send(int channel, const int *descriptors, size_t count)
{
	int number;
	size_t size = sizeof number;

	if (sysctlbyname("shai.syscall.shai_send", &number, &size, NULL, 0) != 0)
		return -1;
	return (int)syscall(number, channel, descriptors, (int)count);
}
