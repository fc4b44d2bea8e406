// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// Numbers beyond the reserved ones, and beyond what Go's run-time system opens.
const unreserved = 300

// sharing is what the victim, as a zygote, has made before it forks a worker. It opens the file
// that its second argument names.
var sharing = map[string]func(file int) error{
	"nothing": func(int) error { return nil },
	"memory": func(int) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
		return err
	},
	"inherited-memory": func(int) error {
		text, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		const share = 0 // INHERIT_SHARE
		text[0]++
		return systemCall(unix.SYS_MINHERIT, uintptr(unsafe.Pointer(&text[0])), 4096, share)
	},
	"private-memory": func(file int) error {
		text, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		text[0]++
		_, err = unix.Mmap(file, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
		return err
	},
	"mapped-file": func(file int) error {
		_, err := unix.Mmap(file, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		return err
	},
	"pipe": func(int) error {
		var ends [2]int
		return unix.Pipe2(ends[:], unix.O_CLOEXEC)
	},
	"socket": func(int) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	},
	"file":           func(file int) error { return unix.Dup2(file, unreserved) },
	"requests":       func(int) error { return unix.Dup2(wire.FDRequests, unreserved) },
	"log":            func(int) error { return unix.Dup2(standardOutput, unreserved) },
	"file-as-input":  func(file int) error { return unix.Dup2(file, 0) },
	"file-as-filler": func(file int) error { return unix.Dup2(file, wire.FDPipe+5) },
	"requests-moved": func(int) error { return unix.Dup2(wire.FDRequests, wire.FDPipe+5) },
	"no-filler":      func(int) error { return unix.Close(wire.FDPipe + 5) },
}

// serveSharing shares something with a worker that it forks, and returns what the worker's
// request to be examined, or else its request for a session, is answered.
func serveSharing(arguments []string) error {
	share := sharing[arguments[0]]
	file, err := answerTo(wire.RequestPath{Path: arguments[1]}, -1)
	if err != nil {
		return err
	}
	if err := share(file); err != nil {
		return err
	}
	unix.Close(file)
	examined, err := newRawRequest(wire.RequestWorker{})
	if err != nil {
		return err
	}
	session, err := newRawRequest(wire.RequestSession{})
	if err != nil {
		return err
	}
	return forkWorker(unix.SYS_FORK, 0, func() syscall.Errno {
		if errno := examined.ask(); errno != 0 {
			return errno
		}
		return session.ask()
	})
}

// forkWithTable forks a process that has the same table of descriptors.
func forkWithTable([]string) error {
	const separateProcess = 1 << 4 // RFPROC, without RFFDG
	return forkWorker(unix.SYS_RFORK, separateProcess, func() syscall.Errno { return 0 })
}

// forkWorker runs a function in a process that a system call makes, and returns its error. The
// function may only make raw system calls.
func forkWorker(number, flags uintptr, do func() syscall.Errno) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return err
	}
	child, _, errno := unix.RawSyscall(number, flags, 0, 0)
	if errno != 0 {
		return errno
	}
	if child == 0 {
		unix.RawSyscall(unix.SYS_EXIT, uintptr(do()), 0, 0)
	}
	var exit unix.Kevent_t
	unix.SetKevent(&exit, int(child), unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit.Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	for {
		count, err := unix.Kevent(queue, []unix.Kevent_t{exit}, events, nil)
		if count == 1 && err == nil {
			break
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
	if status := unix.WaitStatus(events[0].Data); status.ExitStatus() != 0 {
		return syscall.Errno(status.ExitStatus())
	}
	return nil
}

// rawRequest is a request for a process in which Go's run-time system does not run.
type rawRequest struct {
	record, control, answer []byte
	vector                  unix.Iovec
	header                  unix.Msghdr
	ends                    [2]int32
}

func newRawRequest(message wire.Message) (*rawRequest, error) {
	record, err := wire.Encode(7, message)
	if err != nil {
		return nil, err
	}
	r := &rawRequest{record: record, control: unix.UnixRights(-1), answer: make([]byte, 4096)}
	r.vector = unix.Iovec{Base: &r.record[0], Len: uint64(len(r.record))}
	r.header = unix.Msghdr{Iov: &r.vector, Iovlen: 1, Control: &r.control[0], Controllen: uint32(len(r.control))}
	return r, nil
}

// ask sends the request and returns the status of the answer. The socket stays open.
func (r *rawRequest) ask() syscall.Errno {
	const status = 16 // in ANSWER and PLACED
	if _, _, errno := unix.RawSyscall6(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET, 0,
		uintptr(unsafe.Pointer(&r.ends)), 0, 0); errno != 0 {
		return errno
	}
	binary.LittleEndian.PutUint32(r.control[unix.CmsgLen(0):], uint32(r.ends[1]))
	header := uintptr(unsafe.Pointer(&r.header))
	if _, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, wire.FDRequests, header, 0); errno != 0 {
		return errno
	}
	unix.RawSyscall(unix.SYS_CLOSE, uintptr(r.ends[1]), 0, 0)
	count, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(r.ends[0]), uintptr(unsafe.Pointer(&r.answer[0])),
		uintptr(len(r.answer)), 0, 0, 0)
	if errno == 0 && count < status+4 {
		errno = unix.ECONNRESET
	}
	if errno != 0 {
		return errno
	}
	return syscall.Errno(binary.LittleEndian.Uint32(r.answer[status:]))
}

// serveSharingAttempt is a task of which a worker shares something.
func serveSharingAttempt(t *testing.T, kind string, waived plan.Protection) (bool, syscall.Errno, *scripted) {
	t.Helper()
	g := newGround(t)
	spec, decider := worldOn(t, g, "serve-sharing "+kind+" $G/allowed.txt")
	spec.Serving, spec.Capabilities, spec.waived = true, nil, waived
	_, _ = sessionsOf(t, &spec, decider)
	succeeded, errno, got := attempt(t, spec, decider)
	t.Logf("%s: %v %v %s; refused: %s", kind, errno, got.err, got.output, strings.Join(decider.reasons, "; "))
	return succeeded, errno, decider
}

// TestWorkersShareNothing: a worker gets no session if it has anything of its zygote that others
// have as well, and nothing but the examination stops it.
func TestWorkersShareNothing(t *testing.T) {
	for kind, reason := range map[string]string{
		"nothing": "", "private-memory": "", "no-filler": "",
		"memory": "shared memory", "inherited-memory": "shared memory", "mapped-file": "shared memory",
		"pipe": "(pipe)", "socket": "(socket)", "file": "close descriptor 300 (",
		"requests": "close descriptor 300 (socket)", "log": "close descriptor 300 (pipe)",
		"file-as-input": "close descriptor 0 (", "file-as-filler": "allowed.txt)", "requests-moved": "(socket)",
	} {
		t.Run(kind, func(t *testing.T) {
			succeeded, errno, decider := serveSharingAttempt(t, kind, 0)
			switch {
			case reason == "" && !succeeded:
				t.Errorf("a worker that shares nothing gets no session: %v", errno)
			case reason == "":
			case succeeded || errno != unix.EACCES:
				t.Errorf("it gets a session: %v, errno %v", succeeded, errno)
			case !strings.Contains(strings.Join(decider.reasons, "; "), reason):
				t.Errorf("the record says %q, want %q", decider.reasons, reason)
			}
			if succeeded, errno, _ := serveSharingAttempt(t, kind, plan.NothingShared); !succeeded {
				t.Errorf("failed without the examination: %v", errno)
			}
		})
	}
}

// TestUnexaminedWorkers: a process that libshai has not made gets no session.
func TestUnexaminedWorkers(t *testing.T) {
	spec, decider := world(t, "serve 1")
	spec.Serving = true
	_, _ = sessionsOf(t, &spec, decider)
	if _, errno, got := attempt(t, spec, decider); errno != unix.EACCES || !decider.heard("accept") {
		t.Errorf("errno %v: %v %s", errno, got.err, got.output)
	}
}

// TestAlone: no other process may have a worker's memory or its table of descriptors, and what
// the kernel does not tell counts.
func TestAlone(t *testing.T) {
	worker := process{pid: 5, threads: 1, memory: 50, files: 51}
	other := process{pid: 6, threads: 3, memory: 60, files: 61}
	zombie := process{pid: 7, ended: true, memory: 70}
	with := func(change func(*process)) process { changed := worker; change(&changed); return changed }
	for name, test := range map[string]struct {
		list []process
		want error
	}{
		"alone":         {[]process{other, worker, zombie}, nil},
		"gone":          {[]process{other}, errGone},
		"memory":        {[]process{worker, with(func(p *process) { p.pid, p.files = 8, 81 })}, errCommon},
		"table":         {[]process{with(func(p *process) { p.pid, p.memory = 8, 80 }), worker}, errCommon},
		"threads":       {[]process{with(func(p *process) { p.threads = 2 })}, errThreaded},
		"untold memory": {[]process{with(func(p *process) { p.memory = 0 })}, errUntold},
		"untold table":  {[]process{with(func(p *process) { p.files = 0 })}, errUntold},
	} {
		if got, err := alone(test.list, worker.pid); !errors.Is(err, test.want) || err == nil && got != worker {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, test.want)
		}
	}
}
