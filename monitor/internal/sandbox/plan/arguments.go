// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"slices"

	"golang.org/x/net/bpf"

	"shai.dev/monitor/internal/wire"
)

// Allow-lists of argument values. A call with one of these values runs natively.
var (
	duplicatingCommands = []uint32{0, 1030} // F_DUPFD, F_DUPFD_CLOEXEC
	descriptorCommands  = []uint32{
		1, 2, 3, // F_GETFD, F_SETFD, F_GETFL
		1032, 1033, 1034, // F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS
	}
	// These change an end of a pipe or socket for whoever holds it next, too.
	settingCommands = []uint32{4, 1031}      // F_SETFL, F_SETPIPE_SZ
	settingRequests = []uint32{0x5421}       // FIONBIO
	lockCommands    = []uint32{6, 7, 37, 38} // F_SETLK, F_SETLKW and their open-file-description kin
	deviceRequests  = []uint32{
		0x5401, 0x5413, // TCGETS (isatty), TIOCGWINSZ
		0x541b,         // FIONREAD
		0x5450, 0x5451, // FIONCLEX, FIOCLEX
	}
	// Java's java.nio makes a socket pair when it opens its first file. The values are
	// SOCK_STREAM, with SOCK_NONBLOCK and SOCK_CLOEXEC.
	streamTypes = []uint32{1, 1 | 0x800, 1 | 0x80000, 1 | 0x80800}
	// Options that say when a socket waits, sends or gives up. Those that put a value of the
	// task's choice into packets are missing on purpose: in IP_OPTIONS, IP_TOS, SO_RCVBUF
	// (the window) or TCP_MAXSEG, data would leave without a write.
	socketOptions = []uint32{
		7, 9, 13, // SO_SNDBUF, SO_KEEPALIVE, SO_LINGER
		20, 21, 66, 67, // SO_RCVTIMEO, SO_SNDTIMEO and their 64-bit kin
	}
	tcpOptions = []uint32{
		1, 3, 12, // TCP_NODELAY, TCP_CORK, TCP_QUICKACK
		4, 5, 6, 18, // TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT
	}
	// Beyond what a task may set: kind, error and buffers of a socket. TCP_INFO, SO_MEMINFO,
	// SO_COOKIE, SO_PEERCRED and the tables of IP (IPT_SO_GET_INFO) are missing on purpose:
	// they tell of the peer and of the machine.
	queriedSocketOptions = slices.Concat(socketOptions, []uint32{
		2, 3, 4, 8, // SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_RCVBUF
		30, 38, 39, // SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN
	})
	// pthread_join waits for the kernel to wake it, without FUTEX_PRIVATE_FLAG.
	waitingFutexes = []uint32{0, 9, 9 | 0x100} // FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_CLOCK_REALTIME
	// ARCH_SET_GS, SET_FS, GET_FS and GET_GS. With the others a worker gets what a roll-back
	// does not restore, such as a shadow stack or the registers of AMX.
	baseRegisters = []uint32{0x1001, 0x1002, 0x1003, 0x1004}
	// PR_SET_DUMPABLE is missing on purpose: the monitor cannot read the memory of a task
	// that is not dumpable, and so not the paths that it asks for. Nor may a task decide
	// that others can trace it.
	processOptions = []uint32{
		2, 3, // PR_GET_PDEATHSIG, PR_GET_DUMPABLE
		15, 16, // PR_SET_NAME, PR_GET_NAME (HotSpot names its threads)
		21, 23, // PR_GET_SECCOMP, PR_CAPBSET_READ
		29, 30, // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
		38, 39, // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
		41, 42, // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
		0x53564d41, // PR_SET_VMA (glibc and HotSpot name anonymous memory)
	}
)

const (
	// PR_SET_PDEATHSIG is allowed with SIGKILL only, which Sys-E's zygote gives its workers.
	// Any other value would take back the SIGKILL with which a task dies with its keeper.
	setDeathSignal = 1
	killSignal     = 9
	// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. clone has no
	// NEWTIME: there, its bit is part of the exit signal.
	namespaceFlags = 0x7e020000
	newTime        = 0x80    // CLONE_NEWTIME, for unshare
	unixDomain     = 1       // AF_UNIX
	socketLevel    = 1       // SOL_SOCKET
	tcpLevel       = 6       // IPPROTO_TCP
	seekSet        = 0       // SEEK_SET
	seekCurrent    = 1       // SEEK_CUR
	seekEnd        = 2       // SEEK_END
	cloneParent    = 0x8000  // would leave the task's process tree
	cloneThread    = 0x10000 // CLONE_THREAD
)

// code is a part of a filter in which every path ends in an answer.
type code []bpf.Instruction

func answer(value uint32) code { return code{bpf.RetConstant{Val: value}} }

func equal(a, b code) bool { return slices.Equal(a, b) }

// branch compares the accumulator with a value. A conditional jump reaches 255
// instructions; for longer distances it is followed by an unconditional jump.
func branch(test bpf.JumpTest, value uint32, yes, no code) code {
	var head code
	if len(no) <= 255 {
		head = code{bpf.JumpIf{Cond: test, Val: value, SkipTrue: uint8(len(no))}}
	} else {
		head = code{
			bpf.JumpIf{Cond: test, Val: value, SkipFalse: 1},
			bpf.Jump{Skip: uint32(len(no))},
		}
	}
	return slices.Concat(head, no, yes)
}

// argument loads the low word of an argument. Descriptors and the values that
// the filter compares are 32 bits for the kernel, which ignores the high word.
func argument(index int, then code) code {
	return slices.Concat(code{bpf.LoadAbsolute{Off: uint32(offsetArguments + 8*index), Size: 4}}, then)
}

// within tests low <= accumulator < end.
func within(low, end uint32, yes, no code) code {
	return branch(bpf.JumpGreaterOrEqual, low, branch(bpf.JumpGreaterOrEqual, end, no, yes), no)
}

// equals tests an argument against a list.
func equals(index int, values []uint32, yes, no code) code {
	result := no
	for _, value := range slices.Backward(values) {
		result = branch(bpf.JumpEqual, value, yes, result)
	}
	return argument(index, result)
}

// withBits tests whether an argument has any of the bits.
func withBits(index int, bits uint32, yes, no code) code {
	return argument(index, branch(bpf.JumpBitsSet, bits, yes, no))
}

// onlyTruncating tests the flags of an open for O_TRUNC without an access that writes: it changes
// the file, too.
func onlyTruncating(index int, yes, no code) code {
	notForWriting := branch(bpf.JumpBitsSet, linuxWriteOnly,
		branch(bpf.JumpBitsSet, linuxReadWrite, yes, no), branch(bpf.JumpBitsSet, linuxReadWrite, no, yes))
	return argument(index, branch(bpf.JumpBitsSet, linuxTruncate, notForWriting, no))
}

// capabilities tests that every one of the arguments is a capability descriptor.
func capabilities(indices []int, yes, no code) code {
	result := yes
	for _, index := range slices.Backward(indices) {
		result = argument(index, within(wire.FDCapability, wire.FDCapability+wire.FDCapabilityCount, result, no))
	}
	return result
}

const (
	sharedMapping    = 0x01 // MAP_SHARED, and part of MAP_SHARED_VALIDATE
	anonymousMapping = 0x20 // MAP_ANONYMOUS: the kernel ignores the descriptor
	writableMapping  = 0x02 // PROT_WRITE
	closeOnExecRange = 0x04 // CLOSE_RANGE_CLOEXEC
	threadClock      = 0x04 // CPUCLOCK_PERTHREAD_MASK
	callersClock     = 0xfffffff8
	privateFutex     = 0x80 // FUTEX_PRIVATE_FLAG
)

// sharing tests for a mapping through which the task's processes could write to each
// other. The class table and a worker's grant are read-only.
func sharing(yes, no code) code {
	table := equals(4, []uint32{wire.FDClasses, wire.FDGrant}, withBits(2, writableMapping, yes, no), yes)
	return withBits(3, sharedMapping, withBits(3, anonymousMapping, yes, table), no)
}

// owned tests for a descriptor whose settings concern nobody else: a connection, or one
// that the task has opened. Numbers below low are the task's, too.
func owned(index int, low uint32, yes, no code) code {
	return argument(index, within(low, wire.FDReservedEnd,
		within(wire.FDConnection, wire.FDKeyValue+1, yes, no), yes))
}

// descriptors tests that every one of the arguments is a descriptor, and not AT_FDCWD.
func descriptors(indices []int, yes, no code) code {
	result := yes
	for _, index := range slices.Backward(indices) {
		result = argument(index, branch(bpf.JumpGreaterOrEqual, 1<<31, no, result))
	}
	return result
}

// channel tests for an end of a descriptor channel. The checked descriptors are ends of
// the same two-way sockets, so reads from them are restricted in the same way.
func channel(index int, yes, no code) code {
	return argument(index, within(wire.FDChannel, wire.FDReservedEnd, yes, no))
}

// byGate tests that the gate of a sealed worker makes the call, with its own arguments: all that
// it receives is checked by what follows there. Workers that are not sealed may have other code
// at that address, but no end of a channel from which they could read.
func byGate(yes, no code) code {
	const dontWait = 0x40 // MSG_DONTWAIT
	result := yes
	for index, value := range []uint64{wire.GateBuffer + wire.GateRecord, wire.GateRecordMax + 1, dontWait, 0} {
		result = word(offsetArguments+8*(index+1), value, result, no)
	}
	result = word(offsetPointer, wire.RollbackCode+wire.GateReceived, result, no)
	return argument(0, within(wire.FDChannel, wire.FDChannelChecked, result, no))
}

// ofSlot tests for an end of a pipe or channel. The sessions of a slot use it one after the other.
func ofSlot(index int, yes, no code) code {
	return argument(index, within(wire.FDPipe, wire.FDReservedEnd, yes, no))
}

// checked tests for a descriptor whose writes the monitor decides on.
func checked(index int, yes, no code) code {
	return argument(index, branch(bpf.JumpEqual, wire.FDConnectionChecked, yes,
		within(wire.FDChannelChecked, wire.FDReservedEnd, yes, no)))
}

// reserved tests whether any of the arguments is a reserved number from low on.
func reserved(indices []int, low uint32, yes, no code) code {
	result := no
	for _, index := range slices.Backward(indices) {
		result = argument(index, within(low, wire.FDReservedEnd, yes, result))
	}
	return result
}

// ownClock tests for a clock of the machine, the process or one of its threads. A negative
// number is the clock of a process (its number, inverted, from bit 3 on; 0 is the caller) or,
// with bit 2, of a thread, for which the kernel looks in the caller's process only.
func ownClock(index int, yes, no code) code {
	ofProcess := branch(bpf.JumpBitsSet, threadClock, yes, no)
	return argument(index, branch(bpf.JumpGreaterOrEqual, callersClock, yes,
		branch(bpf.JumpGreaterOrEqual, 1<<31, ofProcess, yes)))
}

// socketOptionOf tests level and option of a socket against the lists.
func socketOptionOf(options []uint32, yes, no code) code {
	return equals(1, []uint32{socketLevel}, equals(2, options, yes, no),
		equals(1, []uint32{tcpLevel}, equals(2, tcpOptions, yes, no), no))
}
