// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/wire"
)

// accepted is the address after the roll-back code's accept4.
const accepted = wire.RollbackCode + wire.RollbackAccepted

// stopped is the address of what stops an interval timer.
const stopped = wire.RollbackCode + wire.RollbackStopped

// evaluateAt runs a filter on a call from an address, as evaluate does.
func evaluateAt(t interface{ Fatal(...any) }, filter *bpf.VM, pointer uint64, number uint32,
	arguments ...uint64,
) uint32 {
	var data [64]byte
	half := func(offset int, value uint32) { binary.BigEndian.PutUint32(data[offset:], value) }
	half(offsetNumber, number)
	half(offsetArch, x86)
	for i, value := range append([]uint64{pointer}, arguments...) {
		half(offsetPointer+8*i, uint32(value))
		half(offsetPointer+8*i+4, uint32(value>>32))
	}
	result, err := filter.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(result)
}

func sealedInterpreter(t *testing.T) *bpf.VM {
	t.Helper()
	if _, err := SealedFilter(0); err != nil {
		t.Fatal(err)
	}
	filter, err := bpf.NewVM(sealedFilter(0))
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// TestEveryCallHasARuleWhenSealed: somebody has decided on each call that the task's filter
// does not always refuse. Without a decision it is refused.
func TestEveryCallHasARuleWhenSealed(t *testing.T) {
	known := map[string]bool{}
	for _, call := range calls {
		_, ruled := sealedRules[call.Name]
		if call.Name != "" && ruled == call.isRefused() {
			t.Errorf("%s: the task's filter always refuses it %v, a rule for sealed workers %v", call.Name,
				call.isRefused(), ruled)
		}
		known[call.Name] = true
	}
	for name := range sealedRules {
		if !known[name] {
			t.Errorf("there is no system call %s", name)
		}
	}
	filter := sealedInterpreter(t)
	for _, number := range []uint32{336, uint32(len(callNames)), 1 << 20} {
		if got := evaluateAt(t, filter, 0, number); got != enosys {
			t.Errorf("unknown call %d: %#x", number, got)
		}
	}
}

// TestLeftToTheTask: what the sealed filter leaves to the task's, that one never lets run.
func TestLeftToTheTask(t *testing.T) {
	task, sealed := interpreter(t, filterSpec{serving: true, ownRoot: true, signalsScoped: true}), sealedInterpreter(t)
	rapid.Check(t, func(t *rapid.T) {
		arguments := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(0, 170), rapid.Uint64()), 6, 6).Draw(t, "arguments")
		for _, call := range calls {
			if !call.isRefused() {
				continue
			}
			if got := evaluate(t, task, x86, call.Number, arguments...); got == allow {
				t.Fatalf("%s runs in a worker", call.Name)
			}
			if got := evaluateAt(t, sealed, 0, call.Number, arguments...); got != allow {
				t.Fatalf("%s: %#x, so that it is not recorded", call.Name, got)
			}
		}
	})
}

// sealedAnswers are the answers to calls from the program.
var sealedAnswers = []answered{
	{"read", []uint64{7}, allow}, {"write", []uint64{7}, allow}, {"openat", []uint64{160}, allow},
	{"close", []uint64{160}, allow}, {"exit_group", []uint64{1}, allow}, {"kill", nil, allow},
	{"socket", nil, allow}, {"clone", nil, allow}, // the task's filter asks

	{"mmap", []uint64{0, 4096, 3, 0x22}, enomem}, {"mremap", nil, enomem}, {"brk", nil, untouched},
	{"mprotect", nil, enomem}, {"munmap", nil, enomem}, {"madvise", nil, eperm}, {"pkey_alloc", nil, enosys},
	{"vmsplice", []uint64{160}, eperm}, {"splice", []uint64{160, 0, 161}, allow},
	{"rt_sigreturn", nil, eperm}, {"timer_create", nil, eperm}, {"alarm", nil, eperm},
	{"setitimer", []uint64{2, stopped, 0}, allow}, {"setitimer", []uint64{2, stopped, 1 << 32}, eperm},
	{"setitimer", nil, eperm}, {"setitimer", []uint64{0, stopped + 8}, eperm}, {"setitimer", []uint64{0, stopped >> 32 << 32}, eperm},
	{"setitimer", []uint64{0, stopped & 0xffffffff}, eperm},
	{"getrusage", nil, eperm}, {"times", nil, eperm}, {"umask", nil, eperm}, {"prctl", []uint64{15}, einval},
	{"arch_prctl", []uint64{0x1002}, einval}, {"rseq", nil, enosys}, {"set_robust_list", nil, eperm},
	{"fchdir", []uint64{160}, eperm}, {"restart_syscall", nil, eintr},

	{"rt_sigaction", []uint64{15, 0, 1}, allow}, {"rt_sigaction", []uint64{15, 1 << 32}, eperm},
	{"rt_sigprocmask", []uint64{0, 0, 1}, allow}, {"rt_sigprocmask", []uint64{0, 1}, eperm},
	{"sigaltstack", []uint64{0, 1}, allow}, {"sigaltstack", []uint64{1}, eperm},
	{"prlimit64", []uint64{0, 3, 0, 1}, allow}, {"prlimit64", []uint64{0, 3, 1 << 40}, eperm},
	{"ppoll", []uint64{1, 1, 1, 0}, allow}, {"ppoll", []uint64{1, 1, 1, 1}, eperm},
	{"pselect6", []uint64{1, 1, 1, 1, 1, 0}, allow}, {"pselect6", []uint64{1, 1, 1, 1, 1, 1}, eperm},
	{"pselect6", []uint64{192}, allow}, {"pselect6", []uint64{193}, einval},
	{"select", []uint64{192, 1, 1, 1, 1}, allow}, {"select", []uint64{193}, einval},
	{"select", []uint64{0xffffffff}, einval},
	{"epoll_pwait", []uint64{160, 1, 1, 1, 0}, allow}, {"epoll_pwait", []uint64{160, 1, 1, 1, 1}, eperm},

	{"close_range", []uint64{160, 1 << 31}, allow}, {"close_range", []uint64{3, 0xffffffff, 4}, untouched},
	{"fcntl", []uint64{160, 2}, allow}, {"fcntl", []uint64{7, 2}, eperm}, {"fcntl", []uint64{4, 2}, eperm}, // F_SETFD
	{"fcntl", []uint64{160, 4}, allow}, {"fcntl", []uint64{7, 4}, allow}, {"fcntl", []uint64{9, 4}, eperm}, // F_SETFL
	{"fcntl", []uint64{160, 1031}, allow}, {"fcntl", []uint64{32, 1031}, eperm},
	{"fcntl", []uint64{160, 1033}, allow}, {"fcntl", []uint64{4, 1033}, eperm},
	{"fcntl", []uint64{4, 1}, allow}, {"fcntl", []uint64{160, 0}, allow}, {"fcntl", []uint64{160, 1030}, allow},
	{"fcntl", []uint64{160, 6}, allow}, {"fcntl", []uint64{160, 38}, allow}, // F_SETLK, F_OFD_SETLKW: the monitor
	{"fcntl", []uint64{159, 6}, eperm}, {"fcntl", []uint64{7, 37}, eperm},
	{"fcntl", []uint64{160, 8}, eperm}, {"fcntl", []uint64{160, 1024}, eperm}, // F_SETOWN, F_SETLEASE
	{"ioctl", []uint64{160, 0x5451}, allow}, {"ioctl", []uint64{4, 0x5451}, enotty},
	{"ioctl", []uint64{7, 0x5450}, enotty},
	{"ioctl", []uint64{7, 0x5421}, allow}, {"ioctl", []uint64{1, 0x5421}, enotty},
	{"ioctl", []uint64{1, 0x5401}, allow},
	{"ioctl", []uint64{9, 0x5421}, enotty}, {"ioctl", []uint64{7, 0x5452}, enotty}, // FIONBIO, FIOASYNC
	{"ioctl", []uint64{9, 0x8901}, enotty}, {"ioctl", []uint64{9, 0x8902}, enotty}, // FIOSETOWN, SIOCSPGRP
	{"fcntl", []uint64{9, 8}, eperm}, {"fcntl", []uint64{9, 10}, eperm}, {"fcntl", []uint64{9, 15}, eperm},
	{"setsockopt", []uint64{7, 6, 1}, allow}, {"setsockopt", []uint64{160, 6, 1}, allow},
	{"setsockopt", []uint64{7, 1, 7}, allow}, {"setsockopt", []uint64{7, 6, 13}, allow},
	{"setsockopt", []uint64{7, 1, 13}, eperm}, {"setsockopt", []uint64{160, 1, 13}, eperm}, // SO_LINGER
	{"setsockopt", []uint64{3, 1, 7}, eperm}, {"setsockopt", []uint64{9, 1, 7}, eperm},
	{"fadvise64", []uint64{160}, allow}, {"fadvise64", []uint64{4}, eperm},

	{"clock_gettime", []uint64{0}, allow}, {"clock_gettime", []uint64{11}, allow},
	{"clock_gettime", []uint64{2}, einval}, {"clock_gettime", []uint64{3}, einval},
	{"clock_gettime", []uint64{0xfffffffa}, einval}, {"clock_nanosleep", []uint64{2}, einval},
	{"clock_nanosleep", []uint64{1}, allow}, {"clock_getres", []uint64{3}, einval},
	{"futex", []uint64{0, 0x81}, allow}, {"futex", []uint64{0, 0x86}, enosys}, // FUTEX_LOCK_PI

	{"accept", []uint64{6}, allow}, {"accept4", []uint64{6, 0, 0, closeOnExec}, allow}, // the supervisor answers
}

func TestSealedAnswers(t *testing.T) {
	filter := sealedInterpreter(t)
	for _, call := range sealedAnswers {
		if got := evaluateAt(t, filter, 0x400000, numberOf(call.name), call.arguments...); got != call.want {
			t.Errorf("%s%v: %#x, want %#x", call.name, call.arguments, got, call.want)
		}
	}
}

// TestAcceptInTheRollbackCode: whoever jumps to its accept4 chooses no arguments. Calls from
// elsewhere are left to the supervisor, which refuses them.
func TestAcceptInTheRollbackCode(t *testing.T) {
	filter := sealedInterpreter(t)
	own := [5]uint64{accepted, wire.FDListen, 0, 0, closeOnExec}
	accept := func(of [5]uint64) uint32 { return evaluateAt(t, filter, of[0], numberOf("accept4"), of[1:]...) }
	if got := accept(own); got != allow {
		t.Errorf("the code's own: %#x", got)
	}
	for index := range own {
		for bit := range 64 {
			other, want := own, eperm
			if other[index] ^= 1 << bit; index == 0 {
				want = allow
			}
			if got := accept(other); got != want {
				t.Errorf("%#x: %#x, want %#x", other, got, want)
			}
		}
	}
}

// TestSealedFilterEntries: calls by other entries kill the worker.
func TestSealedFilterEntries(t *testing.T) {
	filter := sealedInterpreter(t)
	for _, call := range calls {
		if got := evaluate(t, filter, i386, call.Number); got != kill {
			t.Errorf("32-bit call %d: %#x", call.Number, got)
		}
		if got := evaluate(t, filter, x86, call.Number|x32Bit); got != kill {
			t.Errorf("x32 call %d: %#x", call.Number, got)
		}
	}
}

// TestSealedWaiver: with the protection off, the sealed filter refuses nothing.
func TestSealedWaiver(t *testing.T) {
	filter, err := bpf.NewVM(sealedFilter(Tracelessness))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		if got := evaluateAt(t, filter, accepted, call.Number, 100, 100, 100, 100, 100, 100); got != allow {
			t.Errorf("%s: %#x", call.Name, got)
		}
	}
}

// TestOnlyTheGateReadsChannels: no other instruction, no other arguments, and no other channels
// than those of sessions; and nobody in a task that serves no users.
func TestOnlyTheGateReadsChannels(t *testing.T) {
	const received = wire.RollbackCode + wire.GateReceived
	task, sealed := interpreter(t, filterSpec{serving: true, ownRoot: true}), sealedInterpreter(t)
	own := [7]uint64{received, wire.FDChannel, wire.GateBuffer + wire.GateRecord, wire.GateRecordMax + 1, 0x40, 0, 77}
	receive := func(filter *bpf.VM, of [7]uint64) uint32 {
		return evaluateAt(t, filter, of[0], numberOf("recvfrom"), of[1:]...)
	}
	for channel := uint64(wire.FDChannel); channel < wire.FDChannelChecked; channel++ {
		own[1] = channel
		if got := receive(task, own); got != allow {
			t.Errorf("the gate's own from %d: %#x", channel, got)
		}
		if got := receive(sealed, own); got != allow {
			t.Errorf("the gate's own from %d, when sealed: %#x", channel, got)
		}
	}
	own[1] = wire.FDChannelChecked
	if got := receive(task, own); got != notify {
		t.Errorf("a checked channel: %#x", got)
	}
	own[1] = wire.FDChannel
	for _, i := range []int{0, 2, 3, 4, 5} { // the sixth argument means nothing without an address
		for bit := range 64 {
			other := own
			other[i] ^= 1 << bit
			if got := receive(task, other); got != notify {
				t.Errorf("argument %d of the gate with bit %d changed: %#x", i, bit, got)
			}
		}
	}
	if got := receive(interpreter(t, filterSpec{}), own); got != notify {
		t.Errorf("a task that serves no users: %#x", got)
	}
	for _, number := range []uint64{wire.FDClasses, wire.FDGrant, wire.FDRollback} {
		if got := evaluate(t, task, x86, numberOf("read"), number); got != notify {
			t.Errorf("read of %d, whose offset others share: %#x", number, got)
		}
	}
	for _, name := range []string{"read", "pread64", "recvmsg", "readv"} {
		if got := evaluateAt(t, task, received, numberOf(name), own[1:]...); got != notify {
			t.Errorf("%s by the gate: %#x", name, got)
		}
	}
}
