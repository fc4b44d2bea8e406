/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Linux backend: gate page, native opens.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch.h"
#include "backend.h"
#include "failure.h"

#define GATE_PAGE_SIZE 4096

__asm__(SHAI_GATE_CALL_ASSEMBLY);

/* Returns the kernel's result, or a negative errno. */
long shai_gate_call(long number, long a, long b, long c);

static bool gate_ready;

int
shai_backend_prepare(void)
{
	static const uint8_t code[] = SHAI_GATE_BYTES;
	void *address = (void *)(uintptr_t)SHAI_GATE_ADDRESS; /* NOLINT: fixed by the wire header */
	void *page;

	page = mmap(address, GATE_PAGE_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		return -1;
	/* Kernels before 4.17 take the address as a hint only. */
	if (page != address) {
		(void)munmap(page, GATE_PAGE_SIZE);
		errno = EEXIST;
		return -1;
	}
	memcpy(page, code, sizeof(code));
	if (mprotect(page, GATE_PAGE_SIZE, PROT_READ | PROT_EXEC) != 0) {
		int error = errno;

		(void)munmap(page, GATE_PAGE_SIZE);
		errno = error;
		return -1;
	}
	gate_ready = true;
	return 0;
}

ssize_t
shai_backend_gate_read(int descriptor, void *buffer, size_t size)
{
	long result;

	if (!gate_ready) {
		errno = ENOSYS;
		return -1;
	}
	result = shai_gate_call(SYS_read, descriptor, (long)(uintptr_t)buffer, (long)size);
	if (result < 0) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

/*
 * Makes the system call itself, since the preload layer (or another one) interposes
 * openat(3).
 */
int
shai_backend_open_in_view(int directory, const char *name)
{
	return (int)syscall(SYS_openat, directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

pid_t
shai_backend_fork_worker(void)
{
	return fork();
}

/* The monitor answers the call itself, after it has placed every descriptor. */
int
shai_backend_accept(void)
{
	int connection;

	do
		connection = accept4(SHAI_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);
	while (connection < 0 && errno == EINTR);
	if (connection < 0)
		return shai_fail(errno, "accept: %s", strerror(errno));
	return connection;
}

bool
shai_backend_holds_directories(void)
{
	return true;
}

/* Does nothing: the process has to exit, and all its resources end with it. */
void
shai_backend_end_session(void)
{
}

int
shai_backend_random(void *buffer, size_t size)
{
	/* Requests of up to 256 bytes are never cut short. */
	return getrandom(buffer, size, 0) == (ssize_t)size ? 0 : -1;
}
