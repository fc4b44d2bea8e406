/* SPDX-License-Identifier: BSD-2-Clause */
#include "gate.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shai_gate.h"
#include "shai_rollback.h"

static int
map(uint64_t address, size_t size, int protection, int flags, int file)
{
	void *mapped = mmap(
	    (void *)(uintptr_t)address, size, protection, flags | MAP_FIXED_NOREPLACE, file, 0);

	return mapped == MAP_FAILED ? -1 : 0;
}

int
shai_gate_prepare(void)
{
	/* The supervisor answers the call, after it has placed the grant. musl would call accept.
	 */
	if (syscall(SYS_accept4, SHAI_FD_GRANT, NULL, NULL, 0L) != SHAI_FD_GRANT)
		return -1;
	if (map(SHAI_GATE_GRANT, SHAI_GATE_GRANT_SIZE, PROT_READ, MAP_SHARED, SHAI_FD_GRANT) != 0 ||
	    map(SHAI_GATE_CLASSES, SHAI_GATE_CLASSES_SIZE, PROT_READ, MAP_SHARED,
		SHAI_FD_CLASSES) != 0)
		return -1;
	return map(SHAI_GATE_BUFFER, SHAI_GATE_BUFFER_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* An empty record looks like the end. */
static bool
has_ended(int channel)
{
	struct pollfd looked_at = {.fd = channel};

	return poll(&looked_at, 1, 0) > 0 && (looked_at.revents & POLLHUP) != 0;
}

ssize_t
shai_gate_receive(int channel, uint32_t query, void *buffer, size_t size)
{
	int64_t (*const gate)(int, uint32_t) =
	    (int64_t(*)(int, uint32_t))(SHAI_ROLLBACK_CODE + SHAI_GATE);
	int64_t length = gate(channel, query);

	if (length == 0 && has_ended(channel))
		return 0;
	if (length > 0 && (size_t)length <= size) {
		memcpy(buffer, (const void *)(SHAI_GATE_BUFFER + SHAI_GATE_RECORD), (size_t)length);
		return (ssize_t)length;
	}
	/* Who closes a socket with unread messages leaves ECONNRESET for the other side, once. */
	errno =
	    length >= 0 || length == -EINPROGRESS || length == -ECONNRESET ? EAGAIN : (int)-length;
	return -1;
}
