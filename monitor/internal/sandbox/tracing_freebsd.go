// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"errors"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traced is a process that this one stops as its debugger: nothing but the debugger makes it
// go on, and the kernel kills it when the debugger ends.
type traced struct {
	pid     int
	stopped bool // is stopped by this process
	resumed int  // the signal with which it goes on: SIGSTOP if others had stopped it before
}

// stopLimit is how long a process may take to stop: until the end of a call that no signal
// interrupts.
const stopLimit = 10 * time.Second

// stop returns when no thread of the process runs. A process that does not stop is ended
// with its task.
func (p *traced) stop(task *task) error {
	list, err := processesOf("kern.proc.pid", p.pid)
	if err != nil || len(list) != 1 {
		return errGone
	}
	p.resumed = 0
	if list[0].stopped {
		p.resumed = int(unix.SIGSTOP)
	}
	if err := unix.PtraceAttach(p.pid); err != nil {
		return err
	}
	defer time.AfterFunc(stopLimit, task.kill).Stop()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(p.pid, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			task.kill()
			return err
		case status&0xff != stoppedStatus:
			return errGone
		default:
			p.stopped = true
			return nil
		}
	}
}

// stoppedStatus is what wait4(2) says of a process that a signal has stopped. ([unix.WaitStatus]
// takes SIGSTOP for the news that a process goes on.)
const stoppedStatus = 0x7f

// resume lets the process go on. One that cannot is ended with its task.
func (p *traced) resume(task *task) {
	if !p.stopped {
		return
	}
	p.stopped = false
	const whereItStopped = 1
	if _, err := ptrace(unix.PT_DETACH, p.pid, whereItStopped, p.resumed); err != nil {
		task.kill()
	}
}

func ptrace(request, pid int, address uintptr, data int) (int, error) {
	result, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), address, uintptr(data), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(result), nil
}

// What of a process would go on although all its threads are stopped, or cannot be seen.
const (
	errProcesses = Unexamined("the task has other processes; raise its taint before they start, or after they have ended")
	errContexts  = Unexamined("the task has contexts (lwc); start another task")
	errWrites    = Unexamined("a program of this machine uses aio(4), and the kernel does not say which; raise the taint when none does")
)

// alone checks that the stopped process is the task's only one, has one thread, and left
// nothing to the kernel that writes later.
func (p *traced) alone(keeper int) error {
	threads, err := ptrace(unix.PT_GETNUMLWPS, p.pid, 0, 0)
	if err != nil {
		return err
	}
	if threads != 1 {
		return ErrThreads
	}
	if err := onlyDescendant(keeper, p.pid); err != nil {
		return err
	}
	kind, err := unix.SysctlRaw("kern.proc.sv_name", p.pid)
	if err != nil {
		return err
	}
	if strings.HasSuffix(unix.ByteSliceToString(kind), " with contexts") { // of shai.ko
		return errContexts
	}
	writes, err := unix.SysctlUint32("vfs.aio.num_queue_count")
	if errors.Is(err, unix.ENOENT) {
		return nil // the kernel has none
	}
	if err != nil {
		return err
	}
	if writes != 0 {
		return errWrites
	}
	return nil
}

// reaperProcess is struct procctl_reaper_pidinfo, and reaperProcesses procctl_reaper_pids.
type (
	reaperProcess struct {
		pid   int32
		_     int32
		flags uint32
		_     [15]uint32
	}

	reaperProcesses struct {
		count uint32
		_     [15]uint32
		list  *reaperProcess
	}
)

// onlyDescendant checks that no other process is left that a task's keeper, the reaper of all
// of them, has as a descendant.
func onlyDescendant(keeper, program int) error {
	const (
		getProcesses = 5 // PROC_REAP_GETPIDS
		isValid      = 1 // REAPER_PIDINFO_VALID
		most         = 64
	)
	var list [most]reaperProcess
	found := reaperProcesses{count: most, list: &list[0]}
	if err := procctl(keeper, getProcesses, unsafe.Pointer(&found)); err != nil {
		return err
	}
	if list[most-1].flags&isValid != 0 {
		return errProcesses
	}
	for _, one := range list {
		if one.flags&isValid == 0 || int(one.pid) == program {
			continue
		}
		if described, err := processesOf("kern.proc.pid", int(one.pid)); err != nil || len(described) != 1 || !described[0].ended {
			return errProcesses
		}
	}
	return nil
}
