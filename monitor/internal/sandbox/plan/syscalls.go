// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"fmt"
	"strings"

	"shai.dev/monitor/internal/bug"
)

// treatment is what the filter does with a system call.
type treatment uint8

const (
	// unclassified is the zero value. A call that is not in the table is refused with
	// ENOSYS, so that libraries fall back to an older call.
	unclassified      treatment = iota
	native                      // runs in the kernel, whatever its arguments
	refused                     // refused by the monitor, which reports it
	refusedPath                 // the same; belongs to path mediation, for waivers
	absent                      // ENOSYS from the filter itself
	watchingCache               // the same
	mediated                    // takes a path, or tells of the machine: the monitor does it on the task's behalf
	execution                   // execve and execveat: allowed once, by the monitor
	accepting                   // answered by a task's supervisor on FDListen, otherwise refused
	signalling                  // native where Landlock scopes signals, else the monitor checks the target
	reading                     // args: descriptors read from; never a channel
	receiving                   // recvfrom: as reading; the gate of a sealed worker reads its channel
	flaggedReading              // preadv2: as reading, without flags
	writing                     // args: descriptor; a checked one asks the monitor
	bulkWriting                 // args: descriptors written to; never a checked one
	flaggedWriting              // pwritev2: as bulkWriting, without flags
	copying                     // args: descriptor read from, descriptor written to
	messaging                   // args: descriptor; messages, which can carry descriptors, come on FDMonitor only
	duplicating                 // args: numbers that must not be reserved
	closing                     // close: without effect on reserved numbers
	closingRange                // close_range: the same for ranges that overlap them
	seeking                     // args: descriptor; never one that workers inherit, and never for holes
	beneathCapability           // args: directory descriptors; native when all are capabilities, else refused
	// The others depend on values of arguments.
	opening       // openat: native beneath a capability without O_PATH, else mediated
	mapping       // mmap: in a task that serves users, no shared memory
	controlling   // fcntl: an allow-list of commands, duplication as duplicating; the monitor locks
	deviceControl // ioctl: an allow-list of requests
	processOption // prctl: an allow-list of options, one of them with one value only
	threadOption  // arch_prctl: in a task that serves users, base registers only
	registering   // rseq: absent in a task that serves users
	forking       // fork and vfork: in a task that serves users its supervisor decides
	cloning       // clone: the same; in other tasks no new namespaces
	onOneself     // arg 0 is a process: only 0, the caller itself
	pairing       // socketpair: only streams, which are pipes once messages are refused
	socketOption  // setsockopt: an allow-list of options by level, on the task's own sockets
	socketQuery   // getsockopt: an allow-list of options by level
	socketEnd     // shutdown: of the task's own sockets
	entering      // fchdir: native, except in a root of one's own
	timing        // arg 0 is a clock: not of another process
	waking        // futex: wakes only the process's own threads
	gifting       // vmsplice: refused where a raised taint would be on memory that is in a pipe
)

// classification lists every system call under its treatment. Numbers in parentheses are
// the arguments that the treatment examines.
var classification = map[treatment]string{
	native: `fstat poll mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
		pipe select sched_yield mremap msync madvise pause nanosleep getitimer alarm setitimer getpid
		getsockname getpeername exit wait4 uname fsync fdatasync
		ftruncate getdents getcwd umask gettimeofday getrlimit getrusage times getuid getgid geteuid
		getegid getppid getpgrp getgroups getresuid getresgid getpgid getsid capget rt_sigpending rt_sigtimedwait
		rt_sigsuspend sigaltstack fstatfs getpriority sched_getparam sched_getscheduler sched_get_priority_max
		sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall setrlimit gettid
		readahead time sched_getaffinity epoll_create getdents64 set_tid_address
		restart_syscall fadvise64 timer_settime timer_gettime timer_getoverrun timer_delete
		exit_group epoll_wait epoll_ctl mbind set_mempolicy get_mempolicy
		waitid ioprio_get pselect6 ppoll set_robust_list sync_file_range epoll_pwait signalfd
		timerfd_create eventfd fallocate timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 pipe2
		getcpu sched_getattr getrandom membarrier mlock2 pkey_mprotect pkey_alloc pkey_free
		epoll_pwait2 map_shadow_stack mseal`,

	// The flags of clone3 are in memory, which the filter cannot read. Libraries fall
	// back to clone after ENOSYS, but after no other error.
	absent: `clone3 futex_waitv futex_wake futex_wait futex_requeue`,
	// They tell which pages of a file somebody has read.
	watchingCache: `mincore cachestat`,

	mediated: `sysinfo open stat lstat access creat readlink statfs newfstatat readlinkat faccessat statx openat2
		faccessat2`,
	opening: `openat(0)`,

	execution:  `execve execveat`,
	accepting:  `accept accept4`,
	signalling: `kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo`,

	reading:           `read(0) readv(0) pread64(0) preadv(0)`,
	receiving:         `recvfrom(0)`,
	flaggedReading:    `preadv2(0)`,
	writing:           `write(0) writev(0) sendto(0)`,
	bulkWriting:       `pwrite64(0) pwritev(0)`,
	flaggedWriting:    `pwritev2(0)`,
	copying:           `sendfile(1,0) splice(0,2) tee(0,1) copy_file_range(0,2)`,
	messaging:         `recvmsg(0)`,
	duplicating:       `dup(0) dup2(0,1) dup3(0,1)`,
	closing:           `close(0)`,
	closingRange:      `close_range`,
	seeking:           `lseek(0)`,
	beneathCapability: `mkdirat(0) mknodat(0) unlinkat(0) renameat(0,2) renameat2(0,2) linkat(0,2) symlinkat(1)`,

	mapping:       `mmap`,
	controlling:   `fcntl(0)`,
	deviceControl: `ioctl(0)`,
	processOption: `prctl`,
	threadOption:  `arch_prctl`,
	registering:   `rseq`,
	forking:       `fork vfork`,
	cloning:       `clone`,
	gifting:       `vmsplice`,
	onOneself:     `prlimit64 get_robust_list`,
	pairing:       `socketpair`,
	socketOption:  `setsockopt(0)`,
	socketQuery:   `getsockopt`,
	socketEnd:     `shutdown(0)`,
	entering:      `fchdir`,
	timing:        `clock_gettime clock_getres clock_nanosleep timer_create`,
	waking:        `futex`,

	// Landlock does not confine chdir, changes of metadata and the like, so these calls
	// are refused by path. Those by descriptor would change the metadata of files that a
	// task may only read, so they are refused as well.
	refusedPath: `truncate chdir rename mkdir rmdir link unlink symlink chmod fchmod chown fchown lchown utime mknod
		utimes fchownat futimesat fchmodat utimensat fchmodat2 setxattr lsetxattr fsetxattr getxattr lgetxattr
		fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr setxattrat getxattrat
		listxattrat removexattrat inotify_init inotify_init1 inotify_add_watch inotify_rm_watch file_getattr
		file_setattr`,

	// A lock tells whoever may open the file that another has opened it.
	refused: `flock remap_file_pages
		shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
		mq_timedsend mq_timedreceive mq_notify mq_getsetattr
		socket connect bind listen recvmmsg sendmmsg sendmsg
		ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_open pidfd_getfd
		pidfd_send_signal move_pages migrate_pages set_mempolicy_home_node
		io_setup io_destroy io_getevents io_submit io_cancel io_pgetevents io_uring_setup io_uring_enter
		io_uring_register
		setpgid setsid setuid setgid setreuid setregid setgroups setresuid setresgid setfsuid setfsgid capset
		setpriority sched_setparam sched_setscheduler sched_setattr sched_setaffinity ioprio_set personality
		unshare setns chroot pivot_root mount umount2 open_tree move_mount fsopen fsconfig fsmount fspick
		mount_setattr open_tree_attr statmount listmount name_to_handle_at open_by_handle_at
		fanotify_init fanotify_mark memfd_create memfd_secret userfaultfd perf_event_open bpf seccomp
		landlock_create_ruleset landlock_add_rule landlock_restrict_self
		lsm_get_self_attr lsm_set_self_attr lsm_list_modules
		add_key request_key keyctl syslog sysfs ustat uselib vhangup modify_ldt _sysctl adjtimex sync syncfs acct
		settimeofday clock_settime clock_adjtime swapon swapoff reboot sethostname setdomainname iopl ioperm
		create_module init_module delete_module finit_module get_kernel_syms query_module kexec_load
		kexec_file_load quotactl quotactl_fd nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver
		set_thread_area get_thread_area lookup_dcookie epoll_ctl_old epoll_wait_old uretprobe`,
}

// Call is a system call and what the filter does with it.
type Call struct {
	Number    uint32
	Name      string // "system call 999" if the number is unknown
	treatment treatment
	arguments []int
}

// calls is the classified table, by number.
var calls = classify()

func classify() []Call {
	table := make([]Call, len(callNames))
	numbers := map[string]int{}
	for number, name := range callNames {
		table[number] = Call{Number: uint32(number), Name: name}
		numbers[name] = number
	}
	for treatment, list := range classification {
		for _, word := range strings.Fields(list) {
			name, arguments := splitArguments(word)
			number, known := numbers[name]
			if !known || name == "" || table[number].treatment != unclassified {
				bug.Found("system call %q is unknown or classified twice", name)
			}
			table[number].treatment, table[number].arguments = treatment, arguments
		}
	}
	return table
}

// splitArguments turns "tee(0,1)" into "tee" and its argument numbers.
func splitArguments(word string) (name string, arguments []int) {
	name, list, _ := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	for _, digit := range strings.ReplaceAll(list, ",", "") {
		arguments = append(arguments, int(digit-'0'))
	}
	return name, arguments
}

// CallOf looks a number up; unknown numbers are unclassified.
func CallOf(number uint32) Call {
	if int(number) < len(calls) && calls[number].Name != "" {
		return calls[number]
	}
	return Call{Number: number, Name: fmt.Sprintf("system call %d", number)}
}

// Refusal returns the error number of Linux with which a call of this kind is refused.
func (c Call) Refusal() int {
	switch c.treatment {
	case unclassified:
		return errnoENOSYS
	case mediated, opening, refusedPath, beneathCapability, reading, receiving, flaggedReading, execution:
		return errnoEACCES
	case deviceControl:
		return errnoENOTTY
	}
	return errnoEPERM
}
