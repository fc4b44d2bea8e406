// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"pgregory.net/rapid"

	"shai.dev/monitor/internal/wire"
)

const (
	x86  = archX8664
	i386 = 0x40000003
)

// numberOf looks a call's number up by name.
func numberOf(name string) uint32 {
	for number, known := range callNames {
		if known == name {
			return uint32(number)
		}
	}
	panic("no system call " + name)
}

// evaluate runs a filter in the interpreter. The interpreter reads packets, which
// are big-endian; seccomp_data's words are put accordingly.
func evaluate(t interface{ Fatal(...any) }, filter *bpf.VM, arch, number uint32, arguments ...uint64) uint32 {
	var data [64]byte
	word := func(offset int, value uint32) { binary.BigEndian.PutUint32(data[offset:], value) }
	word(offsetNumber, number)
	word(offsetArch, arch)
	for i, argument := range arguments {
		word(offsetArguments+8*i, uint32(argument))
		word(offsetArguments+8*i+4, uint32(argument>>32))
	}
	result, err := filter.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(result)
}

func interpreter(t *testing.T, spec filterSpec) *bpf.VM {
	t.Helper()
	filter, err := bpf.NewVM(taskFilter(spec))
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

const (
	allow  = uint32(answerAllow)
	notify = uint32(answerNotify)
	kill   = uint32(answerKill)
	enosys = uint32(answerErrno | errnoENOSYS)
	// untouched says that the call succeeded, though it did nothing.
	untouched  = uint32(answerErrno)
	eopnotsupp = uint32(answerErrno | errnoEOPNOTSUPP)
	einval     = uint32(answerErrno | errnoEINVAL)
	espipe     = uint32(answerErrno | errnoESPIPE)
	eperm      = uint32(answerErrno | errnoEPERM)
	eintr      = uint32(answerErrno | errnoEINTR)
	enomem     = uint32(answerErrno | errnoENOMEM)
	enotty     = uint32(answerErrno | errnoENOTTY)
)

// TestFilterWithOwnRoot: a task with a root of its own opens natively relative to every
// descriptor, and asks for the rest.
func TestFilterWithOwnRoot(t *testing.T) {
	checkAnswers(t, filterSpec{serving: true, ownRoot: true}, []answered{
		{"openat", []uint64{16, 0, 0}, allow},
		{"openat", []uint64{160, 0, 0}, allow},
		{"openat", []uint64{1<<31 - 1, 0, 0}, allow},
		{"openat", []uint64{1<<32 | 160, 0, 0}, allow}, // the kernel ignores the high word
		{"openat", []uint64{160, 0, linuxOpenPath}, notify},
		{"openat", []uint64{160, 0, linuxOpenPath | linuxTruncate | linuxWriteOnly}, notify},
		{"openat", []uint64{160, 0, linuxWriteOnly}, allow},
		{"openat", []uint64{160, 0, linuxTruncate}, notify},
		{"openat", []uint64{160, 0, linuxTruncate | linuxWriteOnly}, allow},
		{"openat", []uint64{160, 0, linuxTruncate | linuxReadWrite}, allow},
		{"openat", []uint64{160, 0, linuxTruncate | linuxWriteOnly | linuxReadWrite}, notify},
		{"openat", []uint64{0xffffff9c, 0, 0}, notify}, // AT_FDCWD
		{"openat", []uint64{0xffffffffffffff9c, 0, 0}, notify},
		{"open", []uint64{0, 0, 0}, notify},
		{"openat2", []uint64{160}, notify},
		{"newfstatat", []uint64{160}, notify},
		{"unlinkat", []uint64{160}, notify},
		{"fchdir", []uint64{160}, notify},
		{"landlock_restrict_self", []uint64{160}, notify},
	})
}

// TestFilterRaising: what a task that may raise its taint writes to the monitor waits for an
// answer, the task is one process, and no memory of it is in a pipe.
func TestFilterRaising(t *testing.T) {
	const thread = 0x3d0f00 // the flags of pthread_create
	checkAnswers(t, filterSpec{raises: true}, []answered{
		{"write", []uint64{3}, notify},
		{"write", []uint64{1<<32 | 3}, notify},
		{"sendto", []uint64{3}, notify},
		{"writev", []uint64{3}, notify},
		{"pwrite64", []uint64{3}, notify},
		{"pwritev2", []uint64{3, 0, 1, 0, 0, 0}, notify},
		{"sendfile", []uint64{3, 200}, notify},
		{"splice", []uint64{200, 0, 3}, notify},
		{"tee", []uint64{200, 3}, notify},
		{"write", []uint64{8}, notify},
		{"write", []uint64{32}, allow},
		{"write", []uint64{160}, allow},
		{"recvmsg", []uint64{3}, allow},
		{"fork", nil, notify},
		{"vfork", nil, notify},
		{"clone", []uint64{0x11}, notify},
		{"clone", []uint64{0x4111}, notify}, // CLONE_VM and CLONE_VFORK
		{"clone", []uint64{thread}, allow},
		{"clone", []uint64{thread | 0x20000000}, notify}, // CLONE_NEWPID
		{"clone3", nil, enosys},
		{"vmsplice", []uint64{32}, notify},
	})
	checkAnswers(t, filterSpec{}, []answered{
		{"write", []uint64{3}, allow},
		{"fork", nil, allow},
		{"clone", []uint64{0x11}, allow},
		{"vmsplice", []uint64{32}, allow},
	})
}

// TestFilterEntries: calls by the 32-bit and x32 entries kill the process.
func TestFilterEntries(t *testing.T) {
	filter := interpreter(t, filterSpec{})
	for _, call := range calls {
		if got := evaluate(t, filter, i386, call.Number); got != kill {
			t.Errorf("32-bit call %d: %#x", call.Number, got)
		}
		if got := evaluate(t, filter, x86, call.Number|x32Bit); got != kill {
			t.Errorf("x32 call %d: %#x", call.Number, got)
		}
	}
	if got := evaluate(t, filter, x86, 0xffffffff); got != kill {
		t.Errorf("call -1: %#x", got)
	}
}

// TestFilterTable: calls that need no look at arguments do what the table says,
// and all others ask when nothing about their arguments is right.
func TestFilterTable(t *testing.T) {
	filter := interpreter(t, filterSpec{})
	wrong := []uint64{100, 100, 100, 100, 100, 100} // a channel's number everywhere
	for _, call := range calls {
		call = CallOf(call.Number)
		want := notify
		switch call.treatment {
		case native:
			want = allow
		case absent, watchingCache:
			want = enosys
		case flaggedReading, flaggedWriting:
			want = eopnotsupp
		case closing:
			want = untouched
		case writing, bulkWriting, cloning, forking, mapping, seeking, closingRange, entering, timing,
			threadOption, registering, gifting:
			continue // 100 is right for these, or they are native unless somebody is served, or the taint may rise
		}
		if got := evaluate(t, filter, x86, call.Number, wrong...); got != want {
			t.Errorf("%s: %#x, want %#x", call.Name, got, want)
		}
	}
}

// TestFilterProperties checks the whole argument space of what matters most.
func TestFilterProperties(t *testing.T) {
	filter := interpreter(t, filterSpec{signalsScoped: true})
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Uint32().Draw(t, "number")
		if rapid.Bool().Draw(t, "known") {
			number = rapid.Uint32Range(0, uint32(len(callNames)+50)).Draw(t, "number in the table")
		}
		arguments := rapid.SliceOfN(rapid.OneOf(rapid.Uint64Range(0, 170), rapid.Uint64()), 6, 6).Draw(t, "arguments")
		got := evaluate(t, filter, x86, number, arguments...)
		name := CallOf(number).Name
		descriptor := uint32(arguments[0])
		switch {
		case number >= x32Bit && got != kill:
			t.Fatalf("x32 number %#x: %#x", number, got)
		case number < x32Bit && CallOf(number).treatment == unclassified && got != notify:
			t.Fatalf("unknown number %d: %#x", number, got)
		case name == "read" && descriptor >= wire.FDChannel && descriptor < wire.FDReservedEnd && got != notify:
			t.Fatalf("read of channel %d: %#x", descriptor, got)
		case name == "openat" && got == allow &&
			(descriptor < wire.FDCapability || descriptor >= wire.FDCapability+wire.FDCapabilityCount):
			t.Fatalf("openat of %d runs natively", descriptor)
		}
	})
}

// TestFilterWaivers: every waiver changes an answer, and only in its own domain.
func TestFilterWaivers(t *testing.T) {
	tests := map[Protection]struct {
		name      string
		arguments []uint64
	}{
		LockMediation:   {"fcntl", []uint64{200, 6}},
		PathMediation:   {"open", nil},
		UnreadChannels:  {"read", []uint64{96}},
		ReservedNumbers: {"dup", []uint64{8}},
		ExecRefusal:     {"execve", nil},
	}
	for waived := range tests {
		filter := interpreter(t, filterSpec{waived: waived, signalsScoped: true})
		for protection, test := range tests {
			want := notify
			if protection == waived {
				want = allow
			}
			if got := evaluate(t, filter, x86, numberOf(test.name), test.arguments...); got != want {
				t.Errorf("%s%v with %d waived: %#x, want %#x", test.name, test.arguments, waived, got, want)
			}
		}
	}
}

// TestFilterSize: the kernel takes 4096 instructions; hot calls take few steps.
func TestFilterSize(t *testing.T) {
	for _, spec := range []filterSpec{{}, {signalsScoped: true}, {serving: true}, {waived: PathMediation}} {
		filter := taskFilter(spec)
		if len(filter) > 2048 {
			t.Errorf("%d instructions", len(filter))
		}
		if _, err := bpf.Assemble(filter); err != nil {
			t.Error(err)
		}
	}
}

// A task that is not confined gets no namespace of its own, and all else.
func TestBaselineFilter(t *testing.T) {
	filter, err := bpf.NewVM(baselineFilter())
	if err != nil {
		t.Fatal(err)
	}
	const refused = uint32(answerErrno | errnoEPERM)
	const newUser, newNet, newMount, thread = 0x10000000, 0x40000000, 0x20000, 0x3d0f00
	for _, test := range []struct {
		name     string
		argument uint64
		want     uint32
	}{
		{"unshare", newUser, refused}, {"unshare", newMount, refused}, {"unshare", newTime, refused},
		{"unshare", 0x400, allow}, // CLONE_FILES
		{"clone", newUser | 17, refused}, {"clone", newNet, refused}, {"clone", 17, allow}, {"clone", thread, allow},
		{"clone3", 0, enosys}, {"setns", 3, refused},
		{"fork", 0, allow}, {"open", 0, allow}, {"execve", 0, allow}, {"socket", 0, allow}, {"mount", 0, allow},
	} {
		if got := evaluate(t, filter, x86, numberOf(test.name), test.argument); got != test.want {
			t.Errorf("%s(%#x): %#x, want %#x", test.name, test.argument, got, test.want)
		}
	}
	if got := evaluate(t, filter, i386, 310, newUser); got != kill { // its unshare
		t.Errorf("32-bit unshare: %#x", got)
	}
}
