// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// Starting a task takes two processes of this same binary, told apart by their
// argv[0]:
//
//	monitor ── keeper ── launcher, which becomes the task
//
// The keeper outlives the monitor's death long enough to kill the task; the
// launcher confines itself and executes the task's program.
const (
	keeperName   = "shai-sandbox-keeper"
	launcherName = "shai-sandbox-launcher"
)

// Descriptors that the keeper inherits; the launcher has the same, launcherOffset
// higher.
const (
	planNumber    = 3 // the plan, JSON
	statusNumber  = 4 // why the launch failed, text; closed by a successful exec
	controlNumber = 5 // SOCK_SEQPACKET to the monitor
	firstNumber   = 6 // the task's descriptors, in the plan's order
)

// launcherOffset keeps the reserved numbers occupied in the launcher from its first
// instruction on. Its Go runtime opens descriptors of its own (the poller's, as soon
// as any package it is linked with makes a timer), which must not land where the
// task's descriptors are placed later.
const launcherOffset = wire.FDReservedEnd - planNumber

// parkedNumber is where the launcher keeps descriptors while it fills the
// reserved numbers. It is above everything the Go runtime opens by itself.
const parkedNumber = 512

// LaunchMain must be the first thing in main and in TestMain of every program
// that uses this package: in the processes that [Backend.Start] makes it takes
// over and does not return.
func LaunchMain() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case keeperName:
		runtime.LockOSThread() // the launcher's death signal follows this thread
		os.Exit(keep())
	case launcherName:
		// Landlock, no_new_privs and the filter bind the calling thread, and exec
		// ends all others: this one becomes the task.
		runtime.LockOSThread()
		err := carryOut()
		unix.Write(statusDescriptor, []byte(err.Error()))
		os.Exit(127)
	}
}

// statusDescriptor is where the launcher reports errors.
var statusDescriptor = statusNumber + launcherOffset

// carryOut executes the plan. It only returns with an error.
func carryOut() error {
	todo, err := readPlan(planNumber + launcherOffset)
	if err != nil {
		return err
	}
	parked, err := park(len(todo.Numbers))
	if err != nil {
		return err
	}
	statusDescriptor = parked.status
	if err := todo.prepare(); err != nil {
		return err
	}
	ruleset := -1
	if todo.Perimeter != nil {
		if ruleset, err = todo.Perimeter.createRuleset(); err != nil {
			return err
		}
		if ruleset, err = unix.FcntlInt(uintptr(ruleset), unix.F_DUPFD_CLOEXEC, parkedNumber); err != nil {
			return fmt.Errorf("keep Landlock ruleset: %w", err)
		}
	}
	if err := todo.place(parked.files); err != nil {
		return err
	}
	if err := todo.confine(ruleset, parked.control); err != nil {
		return err
	}
	if err := todo.Limits.take(); err != nil {
		return err
	}
	err = syscall.Exec(todo.Command[0], todo.Command, todo.Environment)
	return fmt.Errorf("execute %s: %w", todo.Command[0], err)
}

func readPlan(descriptor int) (plan, error) {
	// Not os.File: that would start the runtime's poller, whose descriptors
	// would be in the way.
	var text []byte
	buffer := make([]byte, 1<<16)
	for {
		count, err := unix.Pread(descriptor, buffer, int64(len(text)))
		if err != nil {
			return plan{}, fmt.Errorf("read launch plan: %w", err)
		}
		if count == 0 {
			break
		}
		text = append(text, buffer[:count]...)
	}
	var todo plan
	if err := json.Unmarshal(text, &todo); err != nil {
		return plan{}, fmt.Errorf("read launch plan: %w", err)
	}
	return todo, nil
}

type parkedDescriptors struct {
	status, control int
	files           []int
}

// park duplicates what was inherited to high numbers.
func park(files int) (parkedDescriptors, error) {
	var parked parkedDescriptors
	for number := statusNumber; number < firstNumber+files; number++ {
		high, err := unix.FcntlInt(uintptr(number+launcherOffset), unix.F_DUPFD_CLOEXEC, parkedNumber)
		if err != nil {
			return parked, fmt.Errorf("park descriptor %d above %d (is the limit of open files too low?): %w", number, parkedNumber, err)
		}
		switch number {
		case statusNumber:
			parked.status = high
		case controlNumber:
			parked.control = high
		default:
			parked.files = append(parked.files, high)
		}
	}
	return parked, nil
}

// prepare does what needs paths, before they are out of reach.
func (p plan) prepare() error {
	if p.WorkingDirectory != "" {
		if err := unix.Chdir(p.WorkingDirectory); err != nil {
			return fmt.Errorf("enter working directory %s: %w", p.WorkingDirectory, err)
		}
	}
	if len(p.CPUs) > 0 {
		var set unix.CPUSet
		for _, cpu := range p.CPUs {
			set.Set(cpu)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pin to CPUs %v: %w", p.CPUs, err)
		}
	}
	return p.Limits.prepare()
}

// place puts every descriptor at its number, fills the other reserved numbers,
// and marks all else to be closed by exec.
func (p plan) place(files []int) error {
	sources := map[int]int{}
	for i, number := range p.Numbers {
		sources[number] = files[i]
	}
	for i, path := range p.Capabilities {
		directory, err := openHigh(path, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return fmt.Errorf("open capability: %w", err)
		}
		sources[wire.FDCapability+i] = directory
	}
	filler, err := openHigh("/dev/null", unix.O_PATH)
	if err != nil {
		return err
	}
	for number := wire.FDMonitor; number < wire.FDReservedEnd; number++ {
		source, used := sources[number]
		if !used {
			source = filler
		}
		if err := unix.Dup3(source, number, 0); err != nil {
			return fmt.Errorf("place descriptor %d: %w", number, err)
		}
	}
	if err := unix.CloseRange(wire.FDReservedEnd, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	return nil
}

func openHigh(path string, flags int) (int, error) {
	low, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(low)
	high, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, parkedNumber)
	if err != nil {
		return -1, fmt.Errorf("park %s: %w", path, err)
	}
	return high, nil
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

// readStatus returns what a launcher reported, "" once it has become the task.
func readStatus(status *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(status, 1<<16))
	return string(text), err
}
