/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Attempts to leave or find traces at files: locks, the page cache; and to take the
 * places of reserved descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

#define IS(name) (strcmp(attempt, name) == 0)

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static int
open_for(const char *mode, const char *path)
{
	int flags = strcmp(mode, "r") == 0 ? O_RDONLY : strcmp(mode, "w") == 0 ? O_WRONLY : O_RDWR;

	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

static long
lock(int descriptor, int command, short type)
{
	return syscall(SYS_fcntl, descriptor, command, &(struct flock){.l_type = type});
}

/* A second description sees the lock of the first until that is closed. */
static long
contend(const char *path)
{
	int first = open_for("rw", path), second = open_for("rw", path);

	if (lock(first, F_SETLK, F_WRLCK) < 0)
		return -1;
	if (lock(second, F_SETLK, F_WRLCK) == 0 || errno != EAGAIN || lock(second, F_SETLKW, F_RDLCK) == 0)
		return -1;
	if (lock(first, F_SETLK, F_UNLCK) < 0 || lock(second, F_OFD_SETLK, F_WRLCK) < 0)
		return -1;
	close(second);
	return lock(first, F_OFD_SETLKW, F_WRLCK);
}

static long
look_into_cache(const char *attempt, const char *path)
{
	int descriptor = open_for(IS("pwritev2") ? "w" : "r", path);
	char byte = 'o';
	uint64_t range[2] = {0, 4096}, counts[5];
	unsigned char present;

	if (descriptor < 0)
		return -1;
	if (IS("cachestat"))
		return syscall(SYS_cachestat, descriptor, range, counts, 0);
	if (IS("mincore"))
		return mincore(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0), 4096, &present);
	if (IS("pwritev2"))
		return pwritev2(descriptor, &(struct iovec){&byte, 1}, 1, 0, RWF_HIPRI);
	if (IS("preadv2-plain"))
		return preadv2(descriptor, &(struct iovec){&byte, 1}, 1, 0, 0);
	return preadv2(descriptor, &(struct iovec){&byte, 1}, 1, 0, RWF_NOWAIT);
}

/* Whether a number is free afterwards. */
static long
freed(int number)
{
	if (fcntl(number, F_GETFD) >= 0) {
		errno = EBUSY;
		return -1;
	}
	return 0;
}

/* Whether the machine has other processes. */
static long
count_processes(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return -1;
	errno = ESRCH;
	return info.procs > 1 && info.freeram < info.totalram ? 0 : -1;
}

/* The clock of what a process has computed, as clock_getcpuclockid(3) makes it. */
static clockid_t
clock_of(pid_t process)
{
	return (clockid_t)(~(uint32_t)process << 3 | 2);
}

static long
read_own_clocks(void)
{
	struct timespec time;
	clockid_t thread = clock_of(gettid()) | 4;

	if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time) < 0 || syscall(SYS_clock_gettime, clock_of(0), &time) < 0)
		return -1;
	return syscall(SYS_clock_gettime, thread, &time);
}

/* Wakes whoever waits at a word of this file. */
static long
wake(int operation)
{
	static const uint32_t word __attribute__((aligned(4))) = 1;

	return syscall(SYS_futex, &word, operation, 1, NULL, NULL, 0);
}

/* Reads through memory. */
static long
map_and_touch(const char *name)
{
	long descriptor = syscall(SYS_openat, SHAI_FD_CAPABILITY, name, O_RDONLY, 0);
	const volatile char *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, (int)descriptor, 0);

	return memory == MAP_FAILED ? -1 : memory[0];
}

static long
list_capability(void)
{
	char entries[4096];

	return syscall(SYS_getdents64, syscall(SYS_openat, SHAI_FD_CAPABILITY, ".", O_RDONLY | O_DIRECTORY, 0), entries,
	    sizeof(entries));
}

/* Messages that the filter does not let pass are not announced by poll: who attaches one learns what it does not read. */
static long
attach_filter(int descriptor)
{
	struct sock_filter accept = BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	struct sock_fprog program = {.len = 1, .filter = &accept};

	return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* Asks for the rules of the machine's firewall; an error is an answer, too, unless it says who may ask. */
static long
look_at_firewall(int descriptor)
{
	char info[84] = "filter"; /* struct ipt_getinfo */
	socklen_t size = sizeof(info);

	return getsockopt(descriptor, SOL_IP, 64 /* IPT_SO_GET_INFO */, info, &size) < 0 && errno == EPERM ? -1 : 0;
}

long
trace(const char *attempt, char **a, long otherwise)
{
	int value = 0, n = a[0] ? atoi(a[0]) : -1;
	socklen_t size = sizeof(value);

	if (IS("clock-of-parent")) return syscall(SYS_clock_gettime, clock_of(getppid()), &(struct timespec){0});
	if (IS("timer-of-parent")) return syscall(SYS_timer_create, clock_of(getppid()), NULL, &value);
	if (IS("own-clocks")) return read_own_clocks();
	if (IS("wake-everybody")) return wake(FUTEX_WAKE);
	if (IS("wake-own")) return wake(FUTEX_WAKE | FUTEX_PRIVATE_FLAG);
	if (IS("flock")) return syscall(SYS_flock, open_for("rw", a[0]), 2 /* LOCK_EX */);
	if (IS("lock-read")) return lock(open_for("r", a[0]), F_SETLK, F_RDLCK);
	if (IS("lock-write")) return lock(open_for("w", a[0]), F_SETLK, F_WRLCK);
	if (IS("lock-description")) return lock(open_for("w", a[0]), F_OFD_SETLK, F_WRLCK);
	if (IS("lock")) return lock(open_for("rw", a[0]), F_SETLK, F_WRLCK);
	if (IS("look-for-lock")) return lock(open_for("rw", a[0]), F_GETLK, F_WRLCK);
	if (IS("contend")) return contend(a[0]);
	if (IS("cachestat") || IS("mincore") || IS("pwritev2") || IS("preadv2-plain") || IS("preadv2-nowait"))
		return look_into_cache(attempt, a[0]);
	if (IS("seek-hole")) return lseek(open_for("w", a[0]), 0, SEEK_HOLE);
	if (IS("seek-data")) return lseek(open_for("w", a[0]), 0, SEEK_DATA);
	if (IS("seek-end")) return lseek(open_for("w", a[0]), 0, SEEK_END);
	if (IS("map-and-touch")) return map_and_touch(a[0]);
	if (IS("list-capability")) return list_capability();
	if (IS("close")) return close(n) < 0 ? -1 : freed(n);
	if (IS("close-range")) return close_range((unsigned)n, ~0U, 0) < 0 ? -1 : freed(n);
	if (IS("closefrom")) return closefrom(3), 0;
	if (IS("set-flags")) return fcntl(n, F_SETFL, O_NONBLOCK);
	if (IS("set-nonblocking")) return ioctl(n, FIONBIO, &(int){1});
	if (IS("getsockopt")) return getsockopt(n, atoi(a[1]), atoi(a[2]), &value, &size);
	if (IS("attach-filter")) return attach_filter(n);
	if (IS("firewall")) return look_at_firewall(n);
	if (IS("count-processes")) return count_processes();
	if (IS("shutdown")) return shutdown(n, SHUT_RDWR);
	return otherwise;
}
