// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	capabilityFlags = unix.O_PATH | unix.O_DIRECTORY
	fillerFlags     = unix.O_PATH
)

// open builds the Landlock ruleset, -1 without one.
func (p plan) open() (ruleset int, err error) {
	if p.Perimeter == nil {
		return -1, nil
	}
	if ruleset, err = p.Perimeter.createRuleset(); err != nil {
		return -1, err
	}
	if ruleset, err = unix.FcntlInt(uintptr(ruleset), unix.F_DUPFD_CLOEXEC, parkedNumber); err != nil {
		return -1, fmt.Errorf("keep Landlock ruleset: %w", err)
	}
	return ruleset, nil
}

// execute confines this process and makes it the task. It only returns with an error.
func (p plan) execute(ruleset, control int) error {
	if err := p.confine(ruleset, control); err != nil {
		return err
	}
	if err := p.Limits.take(); err != nil {
		return err
	}
	err := syscall.Exec(p.Command[0], p.Command, p.Environment)
	return fmt.Errorf("execute %s: %w", p.Command[0], err)
}

func pin(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(0, &set)
}

func closeOnExecFrom(number uint) error {
	return unix.CloseRange(number, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
}

// confine restricts the calling thread. The filter comes last; its listener is
// sent by another thread, which is not under the filter and ends with exec.
func (p plan) confine(ruleset, control int) error {
	if p.Perimeter == nil && len(p.Filter) == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if ruleset >= 0 {
		if err := restrictSelf(ruleset); err != nil {
			return err
		}
	}
	if len(p.Filter) == 0 {
		return nil
	}
	listeners, sent := make(chan int), make(chan error)
	go func() {
		listener := <-listeners
		sent <- unix.Sendmsg(control, []byte(`{"kind":"listener"}`), unix.UnixRights(listener), nil, 0)
	}()
	listener, err := installFilter(p.Filter)
	if err != nil {
		return err
	}
	listeners <- listener
	if err := <-sent; err != nil {
		return fmt.Errorf("send seccomp listener: %w", err)
	}
	return nil
}

// installFilter puts the calling thread under a filter and returns the listener
// of its notifications.
func installFilter(filter []bpf.RawInstruction) (int, error) {
	program := make([]unix.SockFilter, len(filter))
	for i, instruction := range filter {
		program[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// WAIT_KILLABLE_RECV: once the monitor has a request, a signal that is not
	// deadly does not take it away and restart the call. An accepted connection
	// would otherwise be lost.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&header)))
	runtime.KeepAlive(program)
	switch errno {
	case 0:
		return int(listener), nil
	case unix.EBUSY:
		return -1, fmt.Errorf("install filter: another supervisor already listens to this process (a container runtime's?): %w", errno)
	}
	return -1, fmt.Errorf("install filter of %d instructions: %w", len(program), errno)
}
