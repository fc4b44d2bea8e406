/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that attempts one thing, named by its first argument, and says what
 * came of it: exit status 0 when it succeeded, otherwise 1, with "errno N" on
 * standard output. The tests run it inside a sandbox and, to prove that they
 * could see a success, with single protections off.
 *
 * It makes system calls directly, so that the C library neither avoids nor
 * replaces the call that is meant.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include "shai_wire.h"
#include "victim.h"

/* An attempt that this function does not know. */
#define NOT_MINE INT64_MIN

static long number(const char *text) { return strtol(text, NULL, 0); }

/* Calls that are made with arguments at fault: reaching the kernel is success. */
static long
reached(long result)
{
	if (result < 0 && (errno == EBADF || errno == EINVAL || errno == EFAULT || errno == ENOTSUP ||
	    errno == ESPIPE || errno == ENOENT))
		return 0;
	return result;
}

long
show(long descriptor)
{
	char text[4096];
	ssize_t count;

	if (descriptor < 0)
		return -1;
	while ((count = read((int)descriptor, text, sizeof(text))) > 0)
		if (write(1, text, (size_t)count) < 0)
			return -1;
	return count;
}

/* Moves what is in a socket into a pipe without reading it. */
static int
to_pipe(int source)
{
	int ends[2];

	if (pipe(ends) < 0)
		return -1;
	return (int)syscall(SYS_splice, source, NULL, ends[1], NULL, 64L, 0L);
}

/* Finds a name in a listing of a directory, and opens it by the listing's descriptor. */
static long
list(const char *path, const char *name)
{
	char entries[4096];
	int directory = (int)syscall(SYS_open, path, O_RDONLY | O_DIRECTORY, 0);
	long size = syscall(SYS_getdents64, directory, entries, sizeof(entries));

	if (memmem(entries, size < 0 ? 0 : (size_t)size, name, strlen(name)) == NULL)
		return -1;
	(void)puts("listed");
	(void)fflush(stdout);
	return show(syscall(SYS_openat, directory, name, O_RDONLY, 0));
}

static long
open_by_openat2(int directory, const char *path)
{
	struct open_how how = {.flags = O_RDONLY};

	return syscall(SYS_openat2, directory, path, &how, sizeof(how));
}

/* Sends a descriptor over a socket pair, whose end takes the place of a reserved number
   unless that is -1. */
static long
pass_descriptor(int number)
{
	int pair[2], passed = 0;
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
	struct iovec vector = {&byte, 1};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -1;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &passed, sizeof(int));
	if (number >= 0 && (close(number) < 0 || fcntl(pair[0], F_DUPFD, number) != number)) {
		errno = EBUSY;
		return -1;
	}
	return syscall(SYS_sendmsg, number < 0 ? pair[0] : number, &message, 0);
}

static long
receive_message(int descriptor)
{
	char text[64];
	struct iovec vector = {text, sizeof(text)};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	return syscall(SYS_recvmsg, descriptor, &message, MSG_DONTWAIT);
}

static long
connect_to(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int descriptor = (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);

	if (descriptor < 0)
		return -1;
	return connect(descriptor, (struct sockaddr *)&address, sizeof(address));
}

static long
read_memory(int process, unsigned long address)
{
	char text[16];
	struct iovec local = {text, sizeof(text)}, remote = {(void *)address, sizeof(text)};

	return syscall(SYS_process_vm_readv, process, &local, 1L, &remote, 1L, 0L);
}

static long
enter_by_int80(void)
{
	long result = 20; /* getpid in the 32-bit table */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
	return result;
}

#define IS(name) (strcmp(attempt, name) == 0)

/* Calls by path: arguments are paths. */
static long
by_path(const char *attempt, char **a)
{
	struct stat status;
	char text[1024];

	if (IS("open")) return show(syscall(SYS_open, a[0], O_RDONLY, 0));
	if (IS("open-write")) return syscall(SYS_open, a[0], O_WRONLY, 0);
	if (IS("create")) return syscall(SYS_open, a[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (IS("creat")) return syscall(SYS_creat, a[0], 0600);
	if (IS("openat")) return show(syscall(SYS_openat, AT_FDCWD, a[0], O_RDONLY, 0));
	if (IS("openat-capability")) return show(syscall(SYS_openat, SHAI_FD_CAPABILITY, a[0], O_RDONLY, 0));
	if (IS("at")) return show(syscall(SYS_openat, SHAI_FD_KEYVALUE, a[0], O_RDONLY, 0));
	if (IS("at-write")) return syscall(SYS_openat, SHAI_FD_KEYVALUE, a[0], O_WRONLY, 0);
	if (IS("at-truncate")) return syscall(SYS_openat, SHAI_FD_KEYVALUE, a[0], O_RDONLY | O_TRUNC, 0);
	if (IS("at-create")) return syscall(SYS_openat, SHAI_FD_KEYVALUE, a[0], O_WRONLY | O_CREAT, 0600);
	if (IS("at-stat")) return syscall(SYS_newfstatat, SHAI_FD_KEYVALUE, a[0], &(struct stat){0}, 0);
	if (IS("fchdir")) return syscall(SYS_fchdir, SHAI_FD_KEYVALUE);
	if (IS("list")) return list(a[0], a[1]);
	if (IS("setsockopt")) {
		int value = 0;

		return syscall(SYS_setsockopt, number(a[0]), number(a[1]), number(a[2]), &value, sizeof(value));
	}
	if (IS("openat-capability-at-once"))
		return syscall(SYS_openat, SHAI_FD_CAPABILITY, a[0], O_RDONLY | O_NONBLOCK, 0);
	if (IS("create-capability")) return syscall(SYS_openat, SHAI_FD_CAPABILITY + 1, a[0], O_WRONLY | O_CREAT, 0600);
	if (IS("pin")) return syscall(SYS_openat, SHAI_FD_CAPABILITY, a[0], O_PATH, 0);
	if (IS("openat2")) return show(open_by_openat2(AT_FDCWD, a[0]));
	if (IS("openat2-capability")) return show(open_by_openat2(SHAI_FD_CAPABILITY, a[0]));
	if (IS("map")) {
		long descriptor = syscall(SYS_open, a[0], O_RDONLY, 0);
		return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, (int)descriptor, 0) == MAP_FAILED ? -1 : 0;
	}
	if (IS("stat")) return syscall(SYS_stat, a[0], &status);
	if (IS("lstat")) return syscall(SYS_lstat, a[0], &status);
	if (IS("newfstatat")) return syscall(SYS_newfstatat, AT_FDCWD, a[0], &status, 0);
	if (IS("newfstatat-capability")) return syscall(SYS_newfstatat, SHAI_FD_CAPABILITY, a[0], &status, 0);
	if (IS("newfstatat-empty")) return syscall(SYS_newfstatat, SHAI_FD_CAPABILITY, a[0], &status, AT_EMPTY_PATH);
	if (IS("statx")) return syscall(SYS_statx, AT_FDCWD, a[0], 0, STATX_ALL, text);
	if (IS("statfs")) return syscall(SYS_statfs, a[0], text);
	if (IS("access")) return syscall(SYS_access, a[0], F_OK);
	if (IS("faccessat")) return syscall(SYS_faccessat, AT_FDCWD, a[0], R_OK);
	if (IS("faccessat2")) return syscall(SYS_faccessat2, AT_FDCWD, a[0], R_OK, 0);
	if (IS("readlink")) return syscall(SYS_readlink, a[0], text, sizeof(text));
	if (IS("readlinkat")) return syscall(SYS_readlinkat, AT_FDCWD, a[0], text, sizeof(text));
	if (IS("mkdir")) return syscall(SYS_mkdir, a[0], 0700);
	if (IS("mkdirat-capability")) return syscall(SYS_mkdirat, SHAI_FD_CAPABILITY + 1, a[0], 0700);
	if (IS("mknod")) return syscall(SYS_mknod, a[0], S_IFIFO | 0600, 0);
	if (IS("mknodat-capability")) return syscall(SYS_mknodat, SHAI_FD_CAPABILITY + 1, a[0], S_IFIFO | 0600, 0);
	if (IS("link")) return syscall(SYS_link, a[0], a[1]);
	if (IS("linkat-capability")) return syscall(SYS_linkat, SHAI_FD_CAPABILITY, a[0], SHAI_FD_CAPABILITY + 1, a[1], 0);
	if (IS("symlink")) return syscall(SYS_symlink, a[0], a[1]);
	if (IS("symlinkat-capability")) return syscall(SYS_symlinkat, a[0], SHAI_FD_CAPABILITY + 1, a[1]);
	if (IS("rename")) return syscall(SYS_rename, a[0], a[1]);
	if (IS("renameat-capability")) return syscall(SYS_renameat, SHAI_FD_CAPABILITY + 1, a[0], SHAI_FD_CAPABILITY + 1, a[1]);
	if (IS("renameat2-out")) return syscall(SYS_renameat2, SHAI_FD_CAPABILITY, a[0], SHAI_FD_CAPABILITY + 1, a[1], 0);
	if (IS("exchange")) return syscall(SYS_renameat2, SHAI_FD_CAPABILITY + 1, a[0], SHAI_FD_CAPABILITY + 1, a[1], RENAME_EXCHANGE);
	if (IS("unlink")) return syscall(SYS_unlink, a[0]);
	if (IS("unlinkat-capability")) return syscall(SYS_unlinkat, SHAI_FD_CAPABILITY + number(a[1]), a[0], 0);
	if (IS("rmdir")) return syscall(SYS_rmdir, a[0]);
	if (IS("truncate")) return syscall(SYS_truncate, a[0], 0);
	if (IS("chdir")) return syscall(SYS_chdir, a[0]);
	if (IS("chmod")) return syscall(SYS_chmod, a[0], 0644);
	if (IS("fchmod")) return syscall(SYS_fchmod, syscall(SYS_open, a[0], O_RDONLY), 0644);
	if (IS("fchmodat")) return syscall(SYS_fchmodat, SHAI_FD_CAPABILITY, a[0], 0644);
	if (IS("chown")) return syscall(SYS_chown, a[0], 0, 0);
	if (IS("utimensat")) return syscall(SYS_utimensat, SHAI_FD_CAPABILITY, a[0], NULL, 0);
	if (IS("getxattr")) return reached(syscall(SYS_getxattr, a[0], "user.none", text, 8) < 0 && errno == ENODATA ? 0 : -1);
	if (IS("handle")) {
		char handle[128] = {0};
		int mount;
		*(unsigned *)handle = 100;
		return reached(syscall(SYS_name_to_handle_at, AT_FDCWD, a[0], handle, &mount, 0));
	}
	if (IS("inotify")) return syscall(SYS_inotify_add_watch, syscall(SYS_inotify_init1, 0), a[0], 2);
	if (IS("chroot")) return syscall(SYS_chroot, a[0]);
	if (IS("exec")) return execl(a[0], a[0], (char *)NULL);
	if (IS("execveat")) {
		char *const arguments[] = {a[0], NULL};
		return syscall(SYS_execveat, AT_FDCWD, a[0], arguments, arguments + 1, 0);
	}
	if (IS("fork-exec")) {
		int status_of;
		if (fork() == 0) {
			execl(a[0], a[0], (char *)NULL);
			_exit(99);
		}
		return wait(&status_of) < 0 || WEXITSTATUS(status_of) == 99 ? -1 : 0;
	}
	if (IS("race")) return race(a[0], a[1], number(a[2]));
	if (IS("open-amid-signals")) return open_amid_signals(a[0]);
	if (IS("open-often")) return open_often(a[0], number(a[1]));
	if (IS("open-in-vfork")) return open_in_vfork(a[0]);
	if (IS("exhaust")) return exhaust(a[0]);
	return NOT_MINE;
}

/* Calls on descriptors: the first argument is a number. */
static long
by_descriptor(const char *attempt, char **a)
{
	char text[64];
	struct iovec vector = {text, sizeof(text)};
	int n = a[0] ? (int)number(a[0]) : -1;

	if (IS("read")) return syscall(SYS_read, n, text, sizeof(text));
	if (IS("readv")) return syscall(SYS_readv, n, &vector, 1L);
	if (IS("preadv2")) return syscall(SYS_preadv2, n, &vector, 1L, -1L, -1L, 0L);
	if (IS("recvfrom")) return syscall(SYS_recvfrom, n, text, sizeof(text), 0L, NULL, NULL);
	if (IS("recvmsg")) return receive_message(n);
	if (IS("splice")) return to_pipe(n);
	if (IS("sendfile")) return reached(syscall(SYS_sendfile, 1, n, NULL, 8L));
	if (IS("dup-read")) return syscall(SYS_read, syscall(SYS_dup, n), text, sizeof(text));
	if (IS("write")) return syscall(SYS_write, n, "data", 4L);
	if (IS("writev")) {
		struct iovec data = {(void *)(uintptr_t)"data", 4};
		return syscall(SYS_writev, n, &data, 1L);
	}
	if (IS("sendto")) return syscall(SYS_sendto, n, "data", 4L, 0L, NULL, 0L);
	if (IS("sendmsg")) {
		struct iovec data = {(void *)(uintptr_t)"data", 4};
		struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
		return syscall(SYS_sendmsg, n, &message, 0);
	}
	if (IS("dup")) return syscall(SYS_dup, n);
	if (IS("dup2")) return syscall(SYS_dup2, 0, n);
	if (IS("dup3")) return syscall(SYS_dup3, 0, n, 0);
	if (IS("dupfd")) return syscall(SYS_fcntl, n, F_DUPFD, 200);
	if (IS("setown")) return syscall(SYS_fcntl, n, F_SETOWN, getpid());
	if (IS("fstat-held")) return syscall(SYS_newfstatat, n, "", &(struct stat){0}, AT_EMPTY_PATH);
	if (IS("is-file")) {
		struct stat status;
		return syscall(SYS_fstat, n, &status) < 0 ? -1 : (S_ISCHR(status.st_mode) ? 0 : -1);
	}
	return NOT_MINE;
}

/* Calls that concern other processes or the whole machine. */
static long
by_system(const char *attempt, char **a)
{
	static char zeros[256];

	if (IS("ptrace")) return ptrace(PTRACE_SEIZE, number(a[0]), NULL, NULL);
	if (IS("process_vm_readv")) return read_memory((int)number(a[0]), strtoul(a[1], NULL, 0));
	if (IS("kill")) return syscall(SYS_kill, number(a[0]), 0);
	if (IS("kill-own")) return syscall(SYS_kill, getpid(), 0);
	if (IS("sigqueue")) return syscall(SYS_rt_sigqueueinfo, number(a[0]), 0, &(siginfo_t){.si_code = SI_QUEUE});
	if (IS("pidfd_open")) return syscall(SYS_pidfd_open, number(a[0]), 0);
	if (IS("pidfd_getfd")) return reached(syscall(SYS_pidfd_getfd, -1, 0, 0));
	if (IS("kcmp")) return syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0);
	if (IS("connect")) return connect_to((int)number(a[0]));
	if (IS("socket-unix")) return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0);
	if (IS("socketpair")) return syscall(SYS_socketpair, AF_UNIX, number(a[0]), 0, zeros);
	if (IS("bind")) return reached(syscall(SYS_bind, -1, zeros, 16));
	if (IS("pass-descriptor")) return pass_descriptor(-1);
	if (IS("pass-descriptor-at")) return pass_descriptor((int)number(a[0]));
	if (IS("io_uring_setup")) return syscall(SYS_io_uring_setup, 4, zeros);
	if (IS("io_uring_enter")) return reached(syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
	if (IS("io_uring_register")) return reached(syscall(SYS_io_uring_register, -1, 0, NULL, 0));
	if (IS("io_setup")) return syscall(SYS_io_setup, 1, zeros);
	if (IS("dumpable")) return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (IS("death-signal")) return prctl(PR_SET_PDEATHSIG, number(a[0]), 0, 0, 0);
	if (IS("prctl-name")) return prctl(PR_SET_NAME, "victim");
	if (IS("setns")) return reached(syscall(SYS_setns, -1, 0));
	if (IS("unshare")) return syscall(SYS_unshare, CLONE_NEWUTS);
	if (IS("clone-namespace")) return syscall(SYS_clone, CLONE_NEWUTS | SIGCHLD, 0, 0, 0, 0);
	if (IS("clone3")) return syscall(SYS_clone3, zeros, 0) < 0 && errno == EINVAL ? 0 : -1;
	if (IS("fork")) return syscall(SYS_fork);
	if (IS("make-in-fork")) return make_in_fork(a[0]);
	if (IS("make-in-worker")) return make_in_worker(a[0]);
	if (IS("bpf")) {
		union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
		return syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map));
	}
	if (IS("memfd_create")) return syscall(SYS_memfd_create, "x", 0);
	if (IS("userfaultfd")) return syscall(SYS_userfaultfd, 0);
	if (IS("perf_event_open")) return reached(syscall(SYS_perf_event_open, zeros, 0, -1, -1, 0));
	if (IS("keyctl")) return syscall(SYS_keyctl, 0, -3, 1);
	if (IS("open_by_handle_at")) return reached(syscall(SYS_open_by_handle_at, AT_FDCWD, zeros, 0));
	if (IS("mount")) return reached(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
	if (IS("seccomp")) return reached(syscall(SYS_seccomp, 1, 0, NULL));
	if (IS("landlock_create")) return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	if (IS("setsid")) return fork() == 0 ? (setsid() < 0 ? (_exit(1), -1) : (_exit(0), 0)) : ({ int s; wait(&s); s ? -1 : 0; });
	if (IS("setuid")) return syscall(SYS_setuid, 0);
	if (IS("shmget")) return syscall(SYS_shmget, 0, 4096, 01600);
	if (IS("affinity")) return syscall(SYS_sched_setaffinity, 0, sizeof(cpu_set_t), &(cpu_set_t){{1}});
	if (IS("cpus")) {
		cpu_set_t set;
		if (sched_getaffinity(0, sizeof(set), &set) < 0)
			return -1;
		return CPU_COUNT(&set) == 1 && CPU_ISSET((int)number(a[0]), &set) ? 0 : -1;
	}
	if (IS("int80")) return enter_by_int80() == getpid() ? 0 : -1;
	if (IS("x32")) return syscall(0x40000000 | SYS_getpid);
	if (IS("unknown")) return syscall(number(a[0]), 0, 0, 0, 0, 0, 0);
	if (IS("serve")) return serve(number(a[0]));
	if (IS("serve-for-ever")) serve_for_ever();
	if (IS("serve-sealed")) serve_sealed(a[0]);
	if (IS("open-in-session")) return open_in_session(a[0]);
	if (IS("read-all")) return read_all(number(a[0]), number(a[1]));
	if (IS("serve-itself")) return serve_itself();
	if (IS("serve-in-clone")) return serve_in_clone(number(a[0]));
	if (IS("overhear-memory")) return overhear_memory(number(a[0]));
	if (IS("overhear-descriptor")) return overhear_descriptor();
	if (IS("overhear-list")) return overhear_list();
	if (IS("serve-two-at-once")) return serve_two_at_once();
	if (IS("print")) return print_word(a[0]);
	if (IS("serve-two-in-turn")) return serve_two_in_turn();
	if (IS("serve-in-fork-of-worker")) return serve_in_fork_of_worker();
	if (IS("share-memory")) return share_memory(a[0], a[1]);
	if (IS("share-descriptor")) return share_descriptor(a[0], a[1]);
	if (IS("share-signal")) return share_signal(a[0], a[1]);
	return breed(attempt, a, trace(attempt, a, NOT_MINE));
}

int
main(int argc, char **argv)
{
	long (*const kinds[])(const char *, char **) = {by_path, by_descriptor, by_system};
	long result = NOT_MINE;

	if (argc < 2)
		return 2;
	for (size_t i = 0; i < 3 && result == NOT_MINE; i++)
		result = kinds[i](argv[1], argv + 2);
	if (result >= 0)
		return 0;
	printf("errno %d\n", errno);
	return result == NOT_MINE ? 2 : 1;
}
