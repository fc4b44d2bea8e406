/* SPDX-License-Identifier: BSD-2-Clause */
#include "lockdown.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Detached mounts; signals to the task's user; documents whatever their mode is. */
static const int kept[] = {CAP_SYS_ADMIN, CAP_KILL, CAP_DAC_READ_SEARCH};

static bool
is_kept(int capability)
{
	for (size_t i = 0; i < COUNT(kept); i++)
		if (kept[i] == capability)
			return true;
	return false;
}

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	/* Without CAP_SETPCAP the bounding set stays. It only matters to exec, which the filter
	 * forbids. */
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
		if (!is_kept(capability) && prctl(PR_CAPBSET_DROP, capability) != 0 &&
		    errno != EPERM)
			return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
	    syscall(SYS_capget, &header, data) != 0)
		return -1;
	for (int word = 0; word < 2; word++) {
		uint32_t mask = 0;

		for (size_t i = 0; i < COUNT(kept); i++)
			if (kept[i] / 32 == word)
				mask |= 1u << (kept[i] % 32);
		data[word].permitted &= mask;
		data[word].effective = data[word].permitted;
		data[word].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &header, data);
}

/*
 * Calls with any arguments. The descriptors that they are used on are the supervisor's
 * own; of writable files it has only some in memory.
 */
static const int calls[] = {
    __NR_accept4,
    __NR_brk,
    __NR_clock_gettime,
    __NR_close,
    __NR_connect,
    __NR_epoll_ctl,
    __NR_epoll_wait,
    __NR_epoll_pwait,
    __NR_exit,
    __NR_exit_group,
    __NR_fcntl,
    __NR_fstat,
    __NR_ftruncate,
    __NR_futex,
    __NR_getrandom,
    __NR_kill,
    __NR_lseek,
    __NR_madvise,
    __NR_memfd_create,
    __NR_mount_setattr,
    __NR_move_mount,
    __NR_mremap,
    __NR_munmap,
    __NR_newfstatat,
    __NR_open_tree,
    __NR_openat2,
    __NR_pread64,
    __NR_read,
    __NR_recvfrom,
    __NR_recvmsg,
    __NR_restart_syscall,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_sendmsg,
    __NR_sendto,
    __NR_waitid,
    __NR_write,
};

/* Calls with one value, or with values without some bits, of one argument. */
struct limited {
	int call;
	unsigned argument;
	uint32_t mask;  /* of the argument's lower word */
	uint32_t value; /* that the masked word must have */
};

static const struct limited limited[] = {
    {__NR_ioctl, 1, ~0u, (uint32_t)SECCOMP_IOCTL_NOTIF_RECV},
    {__NR_ioctl, 1, ~0u, (uint32_t)SECCOMP_IOCTL_NOTIF_SEND},
    {__NR_ioctl, 1, ~0u, (uint32_t)SECCOMP_IOCTL_NOTIF_ADDFD},
    {__NR_ioctl, 1, ~0u, (uint32_t)SECCOMP_IOCTL_NOTIF_ID_VALID},
    {__NR_ioctl, 1, ~0u, (uint32_t)SECCOMP_IOW(4, uint64_t)}, /* NOTIF_SET_FLAGS */
    {__NR_mmap, 2, PROT_EXEC, 0},
    {__NR_mprotect, 2, PROT_EXEC, 0},
    {__NR_getsockopt, 1, ~0u, SOL_SOCKET},
    {__NR_setsockopt, 1, ~0u, SOL_SOCKET},
    {__NR_socket, 0, ~0u, AF_UNIX},
    {__NR_socketpair, 0, ~0u, AF_UNIX},
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(field))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define NUMBER offsetof(struct seccomp_data, nr)
/* Two instructions for each call, six for each limited one, and the head and the end. */
#define PROGRAM_MAX (2 * COUNT(calls) + 6 * COUNT(limited) + 5)

static size_t
assemble(struct sock_filter program[PROGRAM_MAX])
{
	size_t length = 0;

	program[length++] = (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch));
	program[length++] =
	    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	program[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
	program[length++] = (struct sock_filter)LOAD(NUMBER);
	for (size_t i = 0; i < COUNT(calls); i++) {
		program[length++] = (struct sock_filter)BPF_JUMP(
		    BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		program[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < COUNT(limited); i++) {
		const struct limited *one = &limited[i];
		const struct sock_filter check[] = {
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)one->call, 0, 5),
		    LOAD(offsetof(struct seccomp_data, args[0]) + one->argument * 8),
		    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, one->mask),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one->value, 0, 1),
		    ANSWER(SECCOMP_RET_ALLOW),
		    LOAD(NUMBER),
		};

		for (size_t j = 0; j < COUNT(check); j++)
			program[length++] = check[j];
	}
	program[length++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
	return length;
}

const char *
lockdown(void)
{
	struct sock_filter program[PROGRAM_MAX];
	struct sock_fprog filter = {.filter = program};

	filter.len = (unsigned short)assemble(program);
	/* It knows passwords and secret commands of the key-value store: no core dump, no tracer.
	 */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return "keep its memory to itself";
	if (drop_capabilities() != 0)
		return "drop capabilities";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return "forbid new privileges";
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		return "filter its own system calls";
	return NULL;
}
