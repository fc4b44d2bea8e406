/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The backend of a system without one: it refuses everything. With it, the library
 * compiles and programs link on hosts that can enforce nothing.
 */
#include <errno.h>

#include "backend.h"
#include "failure.h"

static int
refuse(void)
{
	return shai_fail(ENOSYS, "no backend for this system");
}

int
shai_backend_prepare(void)
{
	return refuse();
}

int
shai_backend_channel(enum shai_mode mode)
{
	(void)mode;
	return refuse();
}

int
shai_backend_decisions(void)
{
	return refuse();
}

ssize_t
shai_backend_receive_transfer(int from, uint32_t query, void *buffer, size_t size)
{
	(void)from, (void)query, (void)buffer, (void)size;
	return refuse();
}

int
shai_backend_open_in_view(int directory, const char *name)
{
	(void)directory, (void)name;
	return refuse();
}

int
shai_backend_ask_open(int directory, const char *name, int flags, mode_t mode)
{
	(void)directory, (void)name, (void)flags, (void)mode;
	return refuse();
}

int
shai_backend_register(const struct shai_register *request, bool again)
{
	(void)request, (void)again;
	return refuse();
}

pid_t
shai_backend_fork_worker(void)
{
	return refuse();
}

int
shai_backend_accept(void)
{
	return refuse();
}

bool
shai_backend_holds_directories(void)
{
	return true;
}

void
shai_backend_end_session(int connection)
{
	(void)connection;
}

int
shai_backend_random(void *buffer, size_t size)
{
	(void)buffer, (void)size;
	return refuse();
}
