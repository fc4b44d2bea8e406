/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The backend of a system without one: everything is refused. Keeps the library
 * compiling, and linking programs, on hosts that can enforce nothing.
 */
#include <errno.h>

#include "backend.h"

int
shai_backend_map_gate(void)
{
	errno = ENOSYS;
	return -1;
}

ssize_t
shai_backend_gate_read(int descriptor, void *buffer, size_t size)
{
	(void)descriptor, (void)buffer, (void)size;
	errno = ENOSYS;
	return -1;
}

int
shai_backend_open_beneath(int directory, const char *name)
{
	(void)directory, (void)name;
	errno = ENOSYS;
	return -1;
}

int
shai_backend_restrict(int ruleset)
{
	(void)ruleset;
	errno = ENOSYS;
	return -1;
}

int
shai_backend_random(void *buffer, size_t size)
{
	(void)buffer, (void)size;
	errno = ENOSYS;
	return -1;
}
