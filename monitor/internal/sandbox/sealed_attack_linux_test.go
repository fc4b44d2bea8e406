// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/internal/wire"
)

const (
	opened   = wire.FDReservedEnd // what a session opens first
	atBuffer = 1 << 48            // replaced by the address of the worker's buffer, which is zero
)

// leftovers are calls by which a session could leave something to the next one in a process, or
// learn of the last one, and the errors with which they are refused. None ends the process.
var leftovers = []struct {
	name      string
	call      int
	arguments []uint64
	errno     unix.Errno // 0: seems to succeed
}{
	{"map memory", unix.SYS_MMAP, []uint64{0, 4096, 3, 0x22, 1<<64 - 1}, unix.ENOMEM},
	{"unmap memory", unix.SYS_MUNMAP, []uint64{atBuffer, 0}, unix.ENOMEM},
	{"protect memory", unix.SYS_MPROTECT, []uint64{atBuffer, 4096, 3}, unix.ENOMEM},
	{"make the state writable", unix.SYS_MPROTECT, []uint64{wire.RollbackState, 4096, 3}, unix.ENOMEM},
	{"move memory", unix.SYS_MREMAP, []uint64{atBuffer, 4096, 4096}, unix.ENOMEM},
	{"grow the heap", unix.SYS_BRK, []uint64{0}, 0},
	{"drop memory", unix.SYS_MADVISE, []uint64{atBuffer, 4096, 3}, unix.EPERM},
	{"lock memory", unix.SYS_MLOCK, []uint64{atBuffer, 4096}, unix.EPERM},
	{"unlock all memory", unix.SYS_MUNLOCKALL, nil, unix.EPERM},
	{"seal memory", 462, []uint64{atBuffer, 0}, unix.EPERM}, // mseal
	{"place memory", unix.SYS_SET_MEMPOLICY, []uint64{0, 0, 0}, unix.EPERM},
	{"ask for barriers", unix.SYS_MEMBARRIER, []uint64{0}, unix.EPERM},
	{"take a protection key", unix.SYS_PKEY_ALLOC, []uint64{0, 0}, unix.ENOSYS},
	{"leave memory in a pipe", unix.SYS_VMSPLICE, []uint64{opened, atBuffer, 0}, unix.EPERM},
	{"handle a signal", unix.SYS_RT_SIGACTION, []uint64{10, atBuffer, 0, 8}, unix.EPERM},
	{"block signals", unix.SYS_RT_SIGPROCMASK, []uint64{0, atBuffer, 0, 8}, unix.EPERM},
	{"block signals while polling", unix.SYS_PPOLL, []uint64{0, 0, atBuffer, atBuffer, 8}, unix.EPERM},
	{"take a stack for signals", unix.SYS_SIGALTSTACK, []uint64{atBuffer}, unix.EPERM},
	{"wait for a signal", unix.SYS_RT_SIGTIMEDWAIT, []uint64{atBuffer, 0, atBuffer, 8}, unix.EPERM},
	{"set a timer", unix.SYS_SETITIMER, []uint64{0, atBuffer, 0}, unix.EPERM},
	{"set an alarm", unix.SYS_ALARM, []uint64{0}, unix.EPERM},
	{"make a timer", unix.SYS_TIMER_CREATE, []uint64{1, 0, atBuffer}, unix.EPERM},
	{"read a timer", unix.SYS_GETITIMER, []uint64{1, atBuffer}, unix.EPERM},
	{"take a mask of files", unix.SYS_UMASK, []uint64{0o22}, unix.EPERM},
	{"lower a limit", unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_CORE, atBuffer, 0}, unix.EPERM},
	{"lower a limit by the old call", unix.SYS_SETRLIMIT, []uint64{unix.RLIMIT_CORE, atBuffer}, unix.EPERM},
	{"take a name", unix.SYS_PRCTL, []uint64{unix.PR_SET_NAME, atBuffer}, unix.EINVAL},
	{"set the base of GS", unix.SYS_ARCH_PRCTL, []uint64{0x1001, atBuffer}, unix.EINVAL},
	{"register robust futexes", unix.SYS_SET_ROBUST_LIST, []uint64{atBuffer, 24}, unix.EPERM},
	{"name an address to be cleared", unix.SYS_SET_TID_ADDRESS, []uint64{atBuffer}, unix.EPERM},
	{"close with exec", unix.SYS_FCNTL, []uint64{wire.FDClasses, unix.F_SETFD, 1}, unix.EPERM},
	{"close a connection with exec", unix.SYS_FCNTL, []uint64{wire.FDConnection, unix.F_SETFD, 1}, unix.EPERM},
	{"close with exec by ioctl", unix.SYS_IOCTL, []uint64{wire.FDClasses, 0x5451}, unix.ENOTTY},
	{"keep the classes out of the cache", unix.SYS_FADVISE64, []uint64{wire.FDClasses, 0, 0, 1}, unix.EPERM},
	{"set an option of a socket", unix.SYS_SETSOCKOPT, []uint64{wire.FDKeyValue, 1, 7, atBuffer, 4}, unix.EPERM},
	{"have the next session wait for one's client", unix.SYS_SETSOCKOPT, []uint64{wire.FDConnection, 1, 13, atBuffer, 8}, unix.EPERM},
	{"see what former sessions used", unix.SYS_GETRUSAGE, []uint64{0, atBuffer}, unix.EPERM},
	{"see what former sessions used in ticks", unix.SYS_TIMES, []uint64{atBuffer}, unix.EPERM},
	{"read the clock of the process", unix.SYS_CLOCK_GETTIME, []uint64{2, atBuffer}, unix.EINVAL},
	{"read the clock of the thread", unix.SYS_CLOCK_GETTIME, []uint64{3, atBuffer}, unix.EINVAL},
	{"read the clock of itself by number", unix.SYS_CLOCK_GETTIME, []uint64{0xfffffffa, atBuffer}, unix.EINVAL},
	{"wait by the clock of the process", unix.SYS_CLOCK_NANOSLEEP, []uint64{2, 0, atBuffer}, unix.EINVAL},
	{"ask how many descriptors former sessions had", unix.SYS_SELECT, []uint64{1000, 0, 0, 0, atBuffer}, unix.EINVAL},
	{"own a futex", unix.SYS_FUTEX, []uint64{atBuffer, 0x86}, unix.ENOSYS}, // FUTEX_LOCK_PI
}

// TestSessionsLeaveNothing: what a session could leave to the next one in its process is refused.
// Without the protection it is not.
func TestSessionsLeaveNothing(t *testing.T) {
	for _, off := range []plan.Protection{0, plan.Tracelessness} {
		sessions, _, _ := sealedServing(t, "not", off)
		for _, attack := range leftovers {
			c := sessions.client(t)
			buffer := uint64(c.ask("buffer"))
			arguments := make([]uint64, len(attack.arguments))
			for i, argument := range attack.arguments {
				if arguments[i] = argument; argument == atBuffer {
					arguments[i] = buffer
				}
			}
			got := c.call(attack.call, arguments...)
			if refused := got == -int64(attack.errno); refused != (off == 0) {
				t.Errorf("%s: %d, with protections %#x off", attack.name, got, off)
			}
			c.end(sessions)
		}
		sessions.mutex.Lock()
		if off == 0 && len(sessions.discarded) > 0 {
			t.Errorf("discarded: %q", sessions.discarded)
		}
		sessions.mutex.Unlock()
	}
}

// TestSessionsKeepFlags: no descriptor of a worker is closed with exec, however a session asks.
func TestSessionsKeepFlags(t *testing.T) {
	for off, want := range map[plan.Protection]int64{0: 0, plan.Tracelessness: 1} {
		sessions, _, _ := sealedServing(t, "not", off)
		c := sessions.client(t)
		if got := c.call(unix.SYS_CLOSE_RANGE, wire.FDPipe, wire.FDPipe, unix.CLOSE_RANGE_CLOEXEC); got != 0 {
			t.Errorf("close_range: %d", got)
		}
		if got := c.call(unix.SYS_FCNTL, wire.FDPipe, unix.F_GETFD); got != want {
			t.Errorf("flags %d, with protections %#x off", got, off)
		}
	}
}

// TestSessionsSeeNoTable: the kernel's table of descriptors stays as large as a session has made it.
// Select would show by closed descriptors, which it refuses within the table only.
func TestSessionsSeeNoTable(t *testing.T) {
	for off, refusals := range map[plan.Protection][2]unix.Errno{
		0: {unix.EINVAL, unix.EINVAL}, plan.Tracelessness: {0, unix.EBADF},
	} {
		sessions, _, _ := sealedServing(t, "not", off)
		for number, refused := range refusals {
			c := sessions.client(t)
			buffer := uint64(c.ask("buffer"))
			c.call(unix.SYS_PIPE2, buffer+900/8, 0) // as a set of descriptors, 160 is 901 and 903
			if got := c.call(unix.SYS_SELECT, 1000, buffer, 0, 0, buffer+512); got != -int64(refused) {
				t.Errorf("session %d: %d, with protections %#x off", number, got, off)
			}
			if got := c.call(unix.SYS_DUP2, opened, 1000); got != 1000 {
				t.Errorf("dup2: %d", got)
			}
			c.end(sessions)
		}
	}
}

// TestSealedWorkersSeeNoProc: /proc would tell a session of former ones. A worker that is not
// sealed reads what is about itself.
func TestSealedWorkersSeeNoProc(t *testing.T) {
	for deviation, sealed := range map[string]bool{"not": true, "handler": false} {
		sessions, _, decider := sealedServing(t, deviation, 0)
		c := sessions.client(t)
		for _, path := range []string{"/proc/self/stat", "/proc/self/maps", "/proc/self/task", "/proc/self/fd"} {
			buffer := c.put(path)
			got := c.call(unix.SYS_OPEN, buffer, unix.O_RDONLY)
			if sealed && got != -int64(unix.EACCES) || !sealed && got < opened {
				t.Errorf("sealed %v: open %s: %d", sealed, path, got)
			}
			got = c.call(unix.SYS_STAT, buffer, buffer+1024)
			if sealed && got != -int64(unix.EACCES) || !sealed && got != 0 {
				t.Errorf("sealed %v: stat %s: %d", sealed, path, got)
			}
		}
		buffer := c.put("/proc/self/exe")
		got := c.call(unix.SYS_READLINK, buffer, buffer+1024, 1024)
		if sealed && got != -int64(unix.EACCES) || !sealed && got <= 0 {
			t.Errorf("sealed %v: readlink: %d", sealed, got)
		}
		if sealed && !decider.heard("open") {
			t.Error("refused without a word")
		}
	}
}

// TestLocksEndWithSessions: a session locks files that it has opened, and no lock outlives it.
func TestLocksEndWithSessions(t *testing.T) {
	sessions, _, _ := sealedServing(t, "not", 0)
	for range 2 {
		c := sessions.client(t)
		const written = wire.FDCapability + 1
		if got := c.call(unix.SYS_OPENAT, written, c.put("old.txt"), unix.O_RDWR); got != opened {
			t.Fatalf("openat: %d", got)
		}
		other, err := os.OpenFile(procFile(int(c.call(unix.SYS_GETPID)), fmt.Sprintf("fd/%d", opened)), os.O_RDWR, 0)
		check(t, err)
		lock := func() error {
			return unix.FcntlFlock(other.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		}
		// With zeros, F_RDLCK of all of the file.
		if got := c.call(unix.SYS_FCNTL, opened, unix.F_SETLK, uint64(c.ask("buffer"))+1024); got != 0 {
			t.Errorf("lock: %d", got)
		}
		if err := lock(); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("while it is locked: %v", err)
		}
		c.end(sessions)
		waiting.Until(t, "nobody locks the file", func() bool { return lock() == nil })
		other.Close()
	}
}

// TestSealedWorkersAsk: what the task's filter asks the monitor about, a sealed worker still
// asks about, and refusals are recorded.
func TestSealedWorkersAsk(t *testing.T) {
	sessions, _, decider := sealedServing(t, "not", 0)
	c := sessions.client(t)
	for name, call := range map[string][]uint64{
		"socket": {unix.SYS_SOCKET, 2, 1, 0}, "clone": {unix.SYS_CLONE, 17}, "ptrace": {unix.SYS_PTRACE, 0},
		"seccomp": {unix.SYS_SECCOMP, 1, 0, uint64(c.ask("buffer"))}, "kill": {unix.SYS_KILL, 1, 0},
		"accept":  {unix.SYS_ACCEPT, wire.FDListen},
		"accept4": {unix.SYS_ACCEPT4, wire.FDListen, 0, 0, unix.SOCK_CLOEXEC},
	} {
		if got := c.call(int(call[0]), call[1:]...); got != -int64(unix.EPERM) || !decider.heard(name) {
			t.Errorf("%s: %d, recorded %v", name, got, decider.heard(name))
		}
	}
}

// TestSealedStackDoesNotGrow: a page that the kernel adds to the stack by itself would not be
// restored. It adds one to the stack of a worker that is not sealed.
func TestSealedStackDoesNotGrow(t *testing.T) {
	for deviation, want := range map[string]int64{"not": -int64(unix.EFAULT), "stack": 0} {
		sessions, _, _ := sealedServing(t, deviation, 0)
		c := sessions.client(t)
		smaps, err := os.ReadFile(procFile(int(c.call(unix.SYS_GETPID)), "smaps"))
		check(t, err)
		mappings, err := sealing.ParseMappings(smaps)
		check(t, err)
		at := slices.IndexFunc(mappings, func(m sealing.Mapping) bool { return m.Name == "[stack]" })
		if got := c.call(unix.SYS_UNAME, mappings[at].Start-wire.RollbackPage); got != want {
			t.Errorf("%s: %d, want %d", deviation, got, want)
		}
	}
}
