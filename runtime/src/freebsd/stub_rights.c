/* SPDX-License-Identifier: BSD-2-Clause */
#include "stub_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/capsicum.h>
#include <unistd.h>

#include "shai_wire.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Limits a descriptor to those of the rights that it has: the kernel refuses a
 * request for more.
 */
static int
limit(int descriptor, const uint64_t *rights, size_t count)
{
	cap_rights_t has, keeps;
	int error;

	(void)cap_rights_init(&keeps);
	if (descriptor < 0)
		return -1;
	if (cap_rights_get(descriptor, &has) == 0) {
		for (size_t i = 0; i < count; i++)
			if (cap_rights_is_set(&has, rights[i]))
				(void)cap_rights_set(&keeps, rights[i]);
		if (cap_rights_limit(descriptor, &keeps) == 0)
			return descriptor;
	}
	error = errno;
	(void)close(descriptor);
	errno = error;
	return -1;
}

static int
copy(int descriptor)
{
	return fcntl(descriptor, F_DUPFD_CLOEXEC, SHAI_FD_RESERVED_END);
}

int
stub_for_reading(int descriptor)
{
	static const uint64_t rights[] = {CAP_LOOKUP, CAP_READ, CAP_SEEK, CAP_FSTAT, CAP_FSTATFS,
	    CAP_MMAP_R, CAP_EVENT, CAP_FCNTL};

	return limit(descriptor, rights, COUNT(rights));
}

int
stub_for_waiting(int descriptor)
{
	static const uint64_t rights[] = {CAP_EVENT, CAP_FSTAT};

	return limit(copy(descriptor), rights, COUNT(rights));
}

int
stub_for_receiving(int descriptor)
{
	static const uint64_t rights[] = {CAP_READ, CAP_EVENT, CAP_FSTAT, CAP_FCNTL, CAP_GETSOCKOPT,
	    CAP_GETPEERNAME, CAP_GETSOCKNAME, CAP_SHUTDOWN};

	return limit(copy(descriptor), rights, COUNT(rights));
}

int
stub_for_answers(int descriptor)
{
	static const uint64_t rights[] = {CAP_READ, CAP_EVENT, CAP_GETSOCKOPT};

	return limit(descriptor, rights, COUNT(rights));
}
