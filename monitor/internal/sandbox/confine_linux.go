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

// image holds the files that the launcher opens before it is confined.
type image struct {
	ruleset int // -1 without one
	program int // -1 where there is none
}

// open builds the Landlock ruleset and pins the program, on the task's own mounts.
func (p launchPlan) open() (image, error) {
	if err := p.separateMounts(); err != nil {
		return image{}, err
	}
	program, err := openHigh(p.Command[0], unix.O_PATH)
	if err != nil {
		program = -1 // executing it by its path then gives the right error
	}
	if p.Perimeter == nil {
		return image{-1, program}, nil
	}
	ruleset, err := createRuleset(p.Perimeter)
	if err != nil {
		return image{}, err
	}
	if ruleset, err = unix.FcntlInt(uintptr(ruleset), unix.F_DUPFD_CLOEXEC, parkedNumber); err != nil {
		return image{}, fmt.Errorf("keep Landlock ruleset: %w", err)
	}
	return image{ruleset, program}, nil
}

// separateMounts gives the task mounts of its own, if it needs any.
func (p launchPlan) separateMounts() error {
	var err error
	switch {
	case p.HidesReads:
		err = hideReads()
	case len(p.Owned) > 0 || len(p.Covered) > 0:
		err = ownMounts()
	}
	if err == nil {
		err = cover(p.Covered)
	}
	if err != nil || len(p.Owned) == 0 {
		return err
	}
	return mapOwners(*p.User, p.Owned)
}

// runner returns the function that executes the program, which only returns with an
// error. It executes the program by its path, or by its descriptor if the task's user may
// not search the directory in which the administrator keeps it. This is checked now,
// since the filter will refuse such checks.
func (p launchPlan) runner(program int) func() error {
	if program < 0 || unix.Faccessat(unix.AT_FDCWD, p.Command[0], unix.X_OK, unix.AT_EACCESS) == nil {
		return func() error { return syscall.Exec(p.Command[0], p.Command, p.Environment) }
	}
	return func() error { return executeDescriptor(program, p.Command, p.Environment) }
}

// executeDescriptor calls execveat(2) with a descriptor. It only returns with an error.
func executeDescriptor(program int, arguments, environment []string) error {
	argv, err := syscall.SlicePtrFromStrings(arguments)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(environment)
	if err != nil {
		return err
	}
	empty := [1]byte{}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(program), uintptr(unsafe.Pointer(&empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

// execute confines this process and makes it the task. It only returns with an error.
func (p launchPlan) execute(opened image, control int) error {
	if len(p.Root) > 0 {
		root := ownRoot{files: p.Root, directory: p.WorkingDirectory}
		if err := root.enter(); err != nil {
			return err
		}
	}
	if err := p.dropPrivileges(); err != nil {
		return err
	}
	run := p.runner(opened.program)
	if err := p.confine(opened.ruleset, control); err != nil {
		return err
	}
	if err := takeLimits(p.Limits); err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", p.Command[0], run())
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

// confine restricts the calling thread, which already has no_new_privs. The filter comes
// last. Another thread, which is not under the filter and which exec ends, sends its
// listener.
func (p launchPlan) confine(ruleset, control int) error {
	if ruleset >= 0 {
		if err := restrictSelf(ruleset); err != nil {
			return err
		}
	}
	if len(p.Baseline) > 0 {
		_, err := installFilter(p.Baseline, 0)
		return err
	}
	if len(p.Filter) == 0 {
		return nil
	}
	listeners, sent := make(chan int), make(chan error)
	go func() {
		listener := <-listeners
		sent <- unix.Sendmsg(control, []byte(`{"kind":"listener"}`), unix.UnixRights(listener), nil, 0)
	}()
	// WAIT_KILLABLE_RECV: once the monitor has received a request, only a fatal signal
	// interrupts the call. Otherwise any signal would restart the call, and an accepted
	// connection would be lost.
	listener, err := installFilter(p.Filter,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if err != nil {
		return err
	}
	listeners <- listener
	if err := <-sent; err != nil {
		return fmt.Errorf("send seccomp listener: %w", err)
	}
	return nil
}

// installFilter installs a filter on the calling thread. With the flag NEW_LISTENER it
// returns the listener for its notifications.
func installFilter(filter []bpf.RawInstruction, flags uintptr) (int, error) {
	program := make([]unix.SockFilter, len(filter))
	for i, instruction := range filter {
		program[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	listener, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&header)))
	runtime.KeepAlive(program)
	switch errno {
	case 0:
		return int(listener), nil
	case unix.EBUSY:
		return -1, fmt.Errorf("install filter: another supervisor already listens to this process (a container runtime's?): %w", errno)
	}
	return -1, fmt.Errorf("install filter of %d instructions: %w", len(program), errno)
}
