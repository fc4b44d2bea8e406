// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/bpf"

	"shai.dev/monitor/internal/bug"
	"shai.dev/monitor/internal/wire"
)

// A worker that is sealed and rolled back between its sessions gets a second filter. Of both
// filters' answers the kernel takes the stricter one: what the task's own filter refuses stays
// refused, and what it asks about is still asked. The second filter refuses what would outlive
// a roll-back, which restores memory and registers and closes the descriptors from
// wire.FDReservedEnd on, and what would tell of former sessions.

// traceless calls leave nothing in the process that a roll-back does not take back, and tell
// nothing of former sessions, whatever their arguments. Others that the task's filter does
// not always refuse are in traces or in examined.
const traceless = `
	read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 recvfrom sendto recvmsg
	sendfile splice tee copy_file_range
	open openat creat openat2 stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat
	statfs sysinfo mkdirat mknodat unlinkat renameat renameat2 linkat symlinkat
	close lseek dup dup2 dup3 fstat fstatfs fsync fdatasync ftruncate fallocate getdents getdents64 readahead
	sync_file_range msync pipe pipe2 socketpair eventfd eventfd2 signalfd signalfd4
	timerfd_create timerfd_settime timerfd_gettime
	poll epoll_create epoll_create1 epoll_ctl epoll_wait
	getsockname getpeername getsockopt shutdown
	nanosleep pause sched_yield time gettimeofday getrandom uname getcpu getcwd getrlimit
	getpid gettid getppid getpgrp getpgid getsid getuid geteuid getgid getegid getgroups getresuid getresgid
	capget rt_sigpending getpriority ioprio_get sched_getparam sched_getscheduler sched_getattr
	sched_getaffinity sched_get_priority_max sched_get_priority_min sched_rr_get_interval
	kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo wait4 waitid exit exit_group`

// trace is what calls could leave in a worker for its next session, or tell it of former ones.
type trace struct {
	leaves string
	calls  string
	errno  uint32 // with which they are refused
}

// traces are the calls that are refused whatever their arguments.
var traces = []trace{
	{"mappings, which the roll-back does not make again", "mmap mprotect munmap mremap", errnoENOMEM},
	// A C library compares the result with the address that it has asked for, and takes an
	// error for a high address. With 0 it is out of memory.
	{"the end of the heap", "brk", 0},
	{"properties of memory",
		"madvise mlock mlock2 munlock mlockall munlockall mseal membarrier mbind set_mempolicy get_mempolicy", errnoEPERM},
	{"protection keys", "pkey_alloc pkey_free pkey_mprotect", errnoENOSYS},
	{"a shadow stack", "map_shadow_stack", errnoENOSYS},
	{"pages of the worker in a pipe, to be read when they belong to the next session", "vmsplice", errnoEPERM},
	{"signals that wait, or registers of the session's choice", "rt_sigreturn rt_sigsuspend rt_sigtimedwait", errnoEPERM},
	{"timers, and times of former sessions",
		"alarm getitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete", errnoEPERM},
	{"what a former session waited for", "restart_syscall", errnoEINTR},
	{"settings of the thread", "arch_prctl prctl", errnoEINVAL},
	{"addresses that the kernel writes to", "set_tid_address set_robust_list get_robust_list", errnoEPERM},
	{"addresses that the kernel writes to, and resumes at", "rseq", errnoENOSYS},
	{"settings of the process", "umask setrlimit fchdir", errnoEPERM},
	{"the time that former sessions have used", "getrusage times", errnoEPERM},
}

// examined are the calls of which some arguments are allowed.
var examined = map[string]code{
	// The task's supervisor answers them. It takes a call from another address than the roll-back
	// code's for an attempt to have a second user, which is refused and recorded.
	"accept":  answer(answerAllow),
	"accept4": byRollback(),
	// A question: no new value is given.
	"rt_sigaction":   withNull(1, errnoEPERM),
	"rt_sigprocmask": withNull(1, errnoEPERM),
	"sigaltstack":    withNull(0, errnoEPERM),
	"prlimit64":      withNull(2, errnoEPERM),
	// Without a mask of signals.
	"ppoll":        withNull(3, errnoEPERM),
	"pselect6":     selectable(withNull(5, errnoEPERM)),
	"select":       selectable(answer(answerAllow)),
	"epoll_pwait":  withNull(4, errnoEPERM),
	"epoll_pwait2": withNull(4, errnoEPERM),
	// A reserved number keeps its flags, and what is there its settings.
	"close_range": argument(0, branch(bpf.JumpGreaterOrEqual, wire.FDReservedEnd, answer(answerAllow), answer(answerErrno))),
	"fcntl":       controlOfSealed(),
	"ioctl":       deviceControlOfSealed(),
	"setsockopt":  socketOptionOfSealed(),
	"setitimer":   stopping(),
	"fadvise64":   opened(refusal(errnoEPERM)),
	// No clock that shows the time that former sessions have used.
	"clock_gettime":   equals(0, machineClocks, answer(answerAllow), refusal(errnoEINVAL)),
	"clock_getres":    equals(0, machineClocks, answer(answerAllow), refusal(errnoEINVAL)),
	"clock_nanosleep": equals(0, machineClocks, answer(answerAllow), refusal(errnoEINVAL)),
	// No lock of which the kernel knows the owner.
	"futex": equals(1, ownFutexes, answer(answerAllow), refusal(errnoENOSYS)),
}

var (
	// CLOCK_REALTIME, MONOTONIC, MONOTONIC_RAW, their COARSE kin, BOOTTIME, their ALARM kin and TAI.
	machineClocks = []uint32{0, 1, 4, 5, 6, 7, 8, 9, 11}
	// FUTEX_WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET and WAKE_BITSET on memory of
	// the process, and those without FUTEX_PRIVATE_FLAG that the task's filter allows.
	ownFutexes = []uint32{
		0x80, 0x81, 0x83, 0x84, 0x85, 0x89, 0x8a, 0x189,
		0, 9, 0x109,
	}
	queries = []uint32{
		1, 3, // F_GETFD, F_GETFL
		1032, 1034, // F_GETPIPE_SZ, F_GET_SEALS
	}
	shownSettings       = []uint32{0x5401, 0x5413, 0x541b} // TCGETS, TIOCGWINSZ, FIONREAD
	closeOnExecRequests = []uint32{0x5450, 0x5451}         // FIONCLEX, FIOCLEX
)

const (
	linger             = 13      // SO_LINGER
	setDescriptorFlags = 2       // F_SETFD
	setStatusFlags     = 4       // F_SETFL
	setPipeSize        = 1031    // F_SETPIPE_SZ
	addSeals           = 1033    // F_ADD_SEALS
	setNonblocking     = 0x5421  // FIONBIO
	closeOnExec        = 0x80000 // SOCK_CLOEXEC
)

// SealedFilter computes the filter that a worker gets when it is sealed. waived is none, but in
// tests.
func SealedFilter(waived Protection) ([]bpf.RawInstruction, error) {
	program, err := bpf.Assemble(sealedFilter(waived))
	if err == nil && len(program) > wire.RollbackFilterMax {
		err = fmt.Errorf("%d instructions, and there is room for %d", len(program), wire.RollbackFilterMax)
	}
	return program, err
}

func sealedFilter(waived Protection) []bpf.Instruction {
	if waived&Tracelessness != 0 {
		return withNumber(answer(answerAllow))
	}
	return withNumber(search(intervals(sealedRule, refusal(errnoENOSYS))))
}

// sealedRules has the rules of all calls that the task's filter does not always refuse.
var sealedRules = sealedTable()

func sealedTable() map[string]code {
	rules := map[string]code{}
	add := func(name string, rule code) {
		if _, twice := rules[name]; twice {
			bug.Found("system call %q has two rules for sealed workers", name)
		}
		rules[name] = rule
	}
	for _, name := range strings.Fields(traceless) {
		add(name, answer(answerAllow))
	}
	for _, trace := range traces {
		for _, name := range strings.Fields(trace.calls) {
			add(name, refusal(trace.errno))
		}
	}
	for name, rule := range examined {
		add(name, rule)
	}
	return rules
}

// sealedRule is the rule of one call. Calls that the task's filter always refuses are left
// to it, so that attempts are recorded. A call without a rule is refused.
func sealedRule(call Call) code {
	if call.isRefused() {
		return answer(answerAllow)
	}
	if rule, found := sealedRules[call.Name]; found {
		return rule
	}
	return refusal(errnoENOSYS)
}

// isRefused reports whether the filter of a task that serves users permits the call to none
// of its workers, whatever its arguments.
func (c Call) isRefused() bool {
	switch c.treatment {
	case refused, refusedPath, absent, watchingCache, execution, forking, cloning:
		return true
	}
	return false
}

func refusal(errno uint32) code { return answer(answerErrno | errno) }

// byRollback allows accept4 from the roll-back code with the code's own arguments only: a
// session that jumps there is rolled back. The address is that of the next instruction.
func byRollback() code {
	const accepted = wire.RollbackCode + wire.RollbackAccepted
	result := answer(answerAllow)
	for index, value := range [4]uint64{wire.FDListen, 0, 0, closeOnExec} {
		result = word(offsetArguments+8*index, value, result, refusal(errnoEPERM))
	}
	return word(offsetPointer, accepted, result, answer(answerAllow))
}

// word tests both halves of 64 bits of struct seccomp_data.
func word(offset int, value uint64, yes, no code) code {
	half := func(offset int, value uint32, yes code) code {
		return append(code{bpf.LoadAbsolute{Off: uint32(offset), Size: 4}}, branch(bpf.JumpEqual, value, yes, no)...)
	}
	return half(offset, uint32(value), half(offset+4, uint32(value>>32), yes))
}

// stopping allows a call of setitimer that stops a timer, and tells nothing of it: that of the
// roll-back code, or of who jumps there.
func stopping() code {
	const stopped = wire.RollbackCode + wire.RollbackStopped
	return word(offsetArguments+8, stopped, withNull(2, errnoEPERM), refusal(errnoEPERM))
}

// withNull allows a call with a null pointer as an argument.
func withNull(index int, errno uint32) code {
	return word(offsetArguments+8*index, 0, answer(answerAllow), refusal(errno))
}

// selectable allows select on descriptors that a worker's table has room for from the beginning:
// 160 that are open, and what the kernel adds to have a multiple of 64. The table grows when a session
// opens more, and does not shrink. Select ignores descriptors beyond the table, and refuses those
// within that are closed, so it would tell how many a former session had.
func selectable(rule code) code {
	const room = (wire.FDReservedEnd + 63) / 64 * 64
	return argument(0, branch(bpf.JumpGreaterThan, room, refusal(errnoEINVAL), rule))
}

// opened allows a call on descriptors that the session has opened.
func opened(other code) code {
	return argument(0, branch(bpf.JumpGreaterOrEqual, wire.FDReservedEnd, answer(answerAllow), other))
}

// ofSession allows a call on those, and on the session's connection.
func ofSession(other code) code {
	return equals(0, []uint32{wire.FDConnection, wire.FDConnectionChecked}, answer(answerAllow), opened(other))
}

// controlOfSealed is the rule of fcntl. The monitor's lock of a file (see [Permits.MayLock]) is that of
// a descriptor, and ends with it.
func controlOfSealed() code {
	refuse := refusal(errnoEPERM)
	onOpened := slices.Concat([]uint32{setDescriptorFlags, setPipeSize, addSeals}, lockCommands)
	return equals(1, slices.Concat(queries, duplicatingCommands), answer(answerAllow),
		equals(1, []uint32{setStatusFlags}, ofSession(refuse), equals(1, onOpened, opened(refuse), refuse)))
}

// socketOptionOfSealed is the rule of setsockopt. A connection does not linger: the worker itself
// closes it when the next session begins, which would have to wait for the former one's client.
func socketOptionOfSealed() code {
	refuse := refusal(errnoEPERM)
	settable := ofSession(refuse)
	return equals(1, []uint32{socketLevel}, equals(2, []uint32{linger}, refuse, settable), settable)
}

// deviceControlOfSealed is the rule of ioctl.
func deviceControlOfSealed() code {
	refuse := refusal(errnoENOTTY)
	return equals(1, shownSettings, answer(answerAllow),
		equals(1, []uint32{setNonblocking}, ofSession(refuse),
			equals(1, closeOnExecRequests, opened(refuse), refuse)))
}
