// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"golang.org/x/net/bpf"

	"shai.dev/monitor/internal/wire"
)

// filterSpec holds everything that a system call filter depends on.
type filterSpec struct {
	waived Protection
	// serving is [Spec.Serving]: the task's supervisor decides which processes are made.
	serving bool
	// raises is [Spec.Raises]: what the task writes to the monitor waits for an answer, which
	// depends on what the task has open. No other process has the same files open, and no
	// page of its memory is in a pipe.
	raises bool
	// ownRoot says that the task has a root of its own, in which no path leads to a file
	// that it may not read, and holds only descriptors of directories that contain nothing
	// else: its opens relative to a descriptor run natively.
	ownRoot bool
	// signalsScoped says that Landlock confines signals to the task (ABI 6).
	signalsScoped bool
}

// Answers of a filter, from linux/seccomp.h.
const (
	answerKill   = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	answerErrno  = 0x00050000
	answerNotify = 0x7fc00000
	answerAllow  = 0x7fff0000
)

// Offsets in struct seccomp_data; pointer and arguments are 64 bits, low word first.
const (
	offsetNumber    = 0
	offsetArch      = 4
	offsetPointer   = 8 // the instruction after the call
	offsetArguments = 16
)

const (
	archX8664 = 0xc000003e // AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000 // __X32_SYSCALL_BIT
	// Flags of opens. With O_WRONLY and O_RDWR together, a file is opened for neither.
	linuxWriteOnly = 1        // O_WRONLY
	linuxReadWrite = 2        // O_RDWR
	linuxTruncate  = 0x200    // O_TRUNC
	linuxOpenPath  = 0x200000 // O_PATH
)

// Error numbers of Linux.
const (
	errnoEPERM  = 1
	errnoEINTR  = 4
	errnoENOMEM = 12
	errnoEACCES = 13
	errnoEINVAL = 22
	errnoENOTTY = 25
	errnoESPIPE = 29
	errnoENOSYS = 38
	// EOPNOTSUPP is what file systems answer to flags that they do not know.
	errnoEOPNOTSUPP = 95
)

// hotCalls are tested before the binary search. Unconditionally native calls need no
// place here: since Linux 5.11 the kernel caches that the filter always allows them and
// does not run it.
var hotCalls = []string{"read", "write", "openat", "newfstatat"}

// taskFilter computes the seccomp program of a task. Who answers relies on it:
// every notification that it receives has passed exactly this program.
func taskFilter(spec filterSpec) []bpf.Instruction {
	hot := search(intervals(spec.rule, answer(answerNotify)))
	for i := len(hotCalls) - 1; i >= 0; i-- {
		for _, call := range calls {
			if call.Name == hotCalls[i] {
				hot = branch(bpf.JumpEqual, call.Number, spec.rule(call), hot)
			}
		}
	}
	return withNumber(hot)
}

// withNumber loads the call's number into the accumulator for the code that follows. A
// call by another entry is killed, since its numbers mean other calls.
func withNumber(then code) code {
	return append(code{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: archX8664, SkipTrue: 1},
		bpf.RetConstant{Val: answerKill}, // 32-bit entry
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1},
		bpf.RetConstant{Val: answerKill},
	}, then...)
}

// baselineFilter computes the seccomp program of a task that is not confined. It only
// keeps the task out of other namespaces: in a user namespace of its own, the task would
// have every capability. It makes no notifications.
func baselineFilter() []bpf.Instruction {
	allow, refuse := answer(answerAllow), answer(answerErrno|errnoEPERM)
	rules := map[string]code{
		"clone":   withBits(0, namespaceFlags, refuse, allow),
		"clone3":  answer(answerErrno | errnoENOSYS), // its flags are in memory
		"unshare": withBits(0, namespaceFlags|newTime, refuse, allow),
		"setns":   refuse,
	}
	program := allow
	for _, call := range calls {
		if rule, found := rules[call.Name]; found {
			program = branch(bpf.JumpEqual, call.Number, rule, program)
		}
	}
	return withNumber(program)
}

// interval is a range of consecutive call numbers with the same rule.
type interval struct {
	start uint32
	rule  code
}

// intervals collects the rules of all known calls. Those after them have the rule after.
func intervals(ruleOf func(Call) code, after code) []interval {
	var runs []interval
	for _, call := range calls {
		rule := ruleOf(CallOf(call.Number))
		if len(runs) == 0 || !equal(runs[len(runs)-1].rule, rule) {
			runs = append(runs, interval{start: call.Number, rule: rule})
		}
	}
	return append(runs, interval{start: uint32(len(calls)), rule: after})
}

// search generates a binary search for the interval that contains the number in the
// accumulator.
func search(runs []interval) code {
	if len(runs) == 1 {
		return runs[0].rule
	}
	middle := len(runs) / 2
	return branch(bpf.JumpGreaterOrEqual, runs[middle].start, search(runs[middle:]), search(runs[:middle]))
}

// rule generates the code for one call, after its number has been found. All checks of
// the filter are here and in the building blocks of arguments.go.
func (spec filterSpec) rule(call Call) code {
	allow, ask := answer(answerAllow), answer(answerNotify)
	switch call.treatment {
	case native:
		return allow
	case absent:
		return answer(answerErrno | errnoENOSYS)
	case watchingCache:
		return choose(spec.waives(CacheHiding), allow, answer(answerErrno|errnoENOSYS))
	case mediated, refusedPath:
		return choose(spec.waives(PathMediation), allow, ask)
	case beneathCapability:
		return choose(spec.waives(PathMediation), allow, capabilities(call.arguments, allow, ask))
	case opening:
		return choose(spec.waives(PathMediation), allow, spec.openingRule(call, allow, ask))
	case execution:
		return choose(spec.waives(ExecRefusal), allow, ask)
	case signalling:
		return choose(spec.signalsScoped && !spec.isolatesWorkers(), allow, ask)
	case reading:
		return spec.unread(call.arguments[0], ask, allow)
	case receiving:
		return spec.unread(call.arguments[0], choose(spec.serving, byGate(allow, ask), ask), allow)
	case flaggedReading, flaggedWriting:
		return spec.withoutFlags(call)
	case writing, bulkWriting:
		return spec.checked(call.arguments[0], ask, allow)
	case gifting:
		return choose(spec.raises, ask, allow)
	case copying:
		target := spec.checked(call.arguments[1], ask, allow)
		return spec.unread(call.arguments[0], ask, target)
	case messaging:
		return equals(call.arguments[0], []uint32{wire.FDMonitor}, allow, ask)
	case duplicating:
		return choose(spec.waives(ReservedNumbers), allow, reserved(call.arguments, spec.firstReserved(), ask, allow))
	case closing, closingRange:
		return spec.keepingRule(call, allow, ask)
	case seeking:
		return spec.seekingRule(call, allow)
	}
	return spec.valueRule(call, allow, ask)
}

// valueRule is the part of rule for calls that have allow-lists of argument values.
func (spec filterSpec) valueRule(call Call, allow, ask code) code {
	switch call.treatment {
	case mapping:
		return choose(spec.isolatesWorkers(), sharing(ask, allow), allow)
	case controlling:
		return spec.controlRule(call, allow, ask)
	case deviceControl:
		listed := equals(1, deviceRequests, allow,
			equals(1, settingRequests, owned(0, spec.firstReserved(), allow, ask), ask))
		if spec.serving { // FIONREAD: a session would see what former ones have left in a pipe
			listed = ofSlot(call.arguments[0], ask, listed)
		}
		return choose(spec.waives(UnreadChannels), listed, channel(call.arguments[0], ask, listed))
	case processOption:
		return equals(0, []uint32{setDeathSignal}, equals(1, []uint32{killSignal}, allow, ask),
			equals(0, processOptions, allow, ask))
	case cloning:
		others := choose[uint32](spec.serving, namespaceFlags, namespaceFlags|cloneParent)
		inside := withBits(0, others, ask, allow)
		if spec.raises {
			inside = withBits(0, cloneThread, inside, ask)
		}
		return choose(spec.decidesForks(), ask, inside)
	case forking:
		return choose(spec.decidesForks() || spec.raises, ask, allow)
	case registering:
		return choose(spec.serving, answer(answerErrno|errnoENOSYS), allow)
	case threadOption:
		return choose(spec.serving, equals(0, baseRegisters, allow, answer(answerErrno|errnoEINVAL)), allow)
	case timing:
		return ownClock(0, allow, ask)
	case waking:
		// A futex in a page of a file is the same for all who map the file, such as libc.
		return withBits(1, privateFutex, allow, equals(1, waitingFutexes, allow, ask))
	case entering:
		// The monitor answers relative paths, and it does not follow there.
		return choose(spec.ownRoot, ask, allow)
	case onOneself:
		return equals(0, []uint32{0}, allow, ask)
	case pairing:
		return equals(0, []uint32{unixDomain}, equals(1, streamTypes, allow, ask), ask)
	case socketOption:
		return owned(0, wire.FDMonitor, socketOptionOf(socketOptions, allow, ask), ask)
	case socketQuery:
		return socketOptionOf(queriedSocketOptions, allow, ask)
	case socketEnd:
		return equals(0, []uint32{wire.FDMonitor}, allow, owned(0, wire.FDMonitor, allow, ask))
	}
	// accepting, refused and unclassified: the monitor or the supervisor answers.
	return ask
}

// openingRule is the rule of openat.
func (spec filterSpec) openingRule(call Call, allow, ask code) code {
	if spec.ownRoot {
		// The domain does not restrict truncation: see taskPerimeter.
		return descriptors(call.arguments, withBits(2, linuxOpenPath, ask, onlyTruncating(2, ask, allow)), ask)
	}
	return capabilities(call.arguments, withBits(2, linuxOpenPath, ask, allow), ask)
}

// controlRule is the rule of fcntl. The monitor sets locks.
func (spec filterSpec) controlRule(call Call, allow, ask code) code {
	duplication := choose(spec.waives(ReservedNumbers), allow,
		reserved(call.arguments, spec.firstReserved(), ask, allow))
	setting := owned(0, spec.firstReserved(), allow, ask)
	locks := equals(1, lockCommands, choose(spec.waives(LockMediation), allow, ask), ask)
	return equals(1, duplicatingCommands, duplication,
		equals(1, settingCommands, setting, equals(1, descriptorCommands, allow, locks)))
}

// keepingRule keeps reserved numbers occupied. Closing a
// reserved number seems to succeed: after an error closefrom(3) tries for ever, and
// programs that close their output before they exit report a failure.
func (spec filterSpec) keepingRule(call Call, allow, ask code) code {
	if spec.waives(ReservedNumbers) {
		return allow
	}
	first, kept := spec.firstReserved(), answer(answerErrno)
	if call.treatment == closingRange {
		overlapping := argument(1, branch(bpf.JumpGreaterOrEqual, first,
			withBits(2, closeOnExecRange, allow, kept), allow))
		return argument(0, branch(bpf.JumpGreaterOrEqual, wire.FDReservedEnd, allow, overlapping))
	}
	return reserved(call.arguments, first, kept, allow)
}

// seekingRule allows seeking from the start, the offset and the end. With SEEK_HOLE and
// SEEK_DATA, a task that may only write a file would see where others have written zeros.
// The answer is that of kernels without them. What workers inherit keeps its offset.
func (spec filterSpec) seekingRule(call Call, allow code) code {
	plain := choose(spec.waives(HoleHiding), allow,
		equals(2, []uint32{seekSet, seekCurrent, seekEnd}, allow, answer(answerErrno|errnoEINVAL)))
	if !spec.isolatesWorkers() || spec.waives(ReservedNumbers) {
		return plain
	}
	return reserved(call.arguments, spec.firstReserved(), answer(answerErrno|errnoESPIPE), plain)
}

// withoutFlags is the rule of calls with flags (RWF_…) in argument 5. With RWF_NOWAIT a
// task would see what others have read.
func (spec filterSpec) withoutFlags(call Call) code {
	allow, ask := answer(answerAllow), answer(answerNotify)
	plain := spec.checked(call.arguments[0], ask, allow)
	if call.treatment == flaggedReading {
		plain = spec.unread(call.arguments[0], ask, allow)
	}
	return choose(spec.waives(CacheHiding), plain,
		equals(5, []uint32{0}, plain, answer(answerErrno|errnoEOPNOTSUPP)))
}

// unread tests for descriptors that a task does not read: channels, and in a task that
// serves users the class table, the roll-back code and the grant, whose offsets its processes or
// a worker's sessions share.
func (spec filterSpec) unread(index int, ofChannel, other code) code {
	if spec.isolatesWorkers() {
		other = equals(index, []uint32{wire.FDClasses, wire.FDGrant, wire.FDRollback}, answer(answerNotify), other)
	}
	return choose(spec.waives(UnreadChannels), other, channel(index, ofChannel, other))
}

// waives reports whether a test has switched the protection off.
func (spec filterSpec) waives(p Protection) bool { return spec.waived&p != 0 }

// isolatesWorkers reports whether the task's processes must share nothing.
func (spec filterSpec) isolatesWorkers() bool { return spec.serving && !spec.waives(NothingShared) }

// firstReserved returns the lowest reserved number. In a task that serves users standard
// input and output are reserved, too: its forks inherit what is there.
func (spec filterSpec) firstReserved() uint32 {
	if spec.isolatesWorkers() {
		return 0
	}
	return wire.FDMonitor
}

// checked tests for a descriptor on whose writes the monitor decides.
func (spec filterSpec) checked(index int, yes, no code) code {
	if spec.raises {
		return equals(index, []uint32{wire.FDMonitor}, yes, checked(index, yes, no))
	}
	return checked(index, yes, no)
}

// decidesForks reports whether the task's supervisor decides on every new process and thread.
func (spec filterSpec) decidesForks() bool { return spec.serving && !spec.waives(SeparateWorkers) }

func choose[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}
