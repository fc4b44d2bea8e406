// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// Starting a task takes two processes of this same binary, told apart by their only
// argument (on FreeBSD, Go replaces an argv[0] that is longer than the program's path):
//
//	monitor ── keeper ── launcher, which becomes the task
//
// The keeper lives long enough after the monitor's death to kill the task. The launcher
// confines itself and executes the task's program.
const (
	keeperName   = "shai-sandbox-keeper"
	launcherName = "shai-sandbox-launcher"
)

// Descriptors that the keeper inherits. The launcher has the same, at numbers higher by
// launcherOffset.
const (
	planNumber    = 3 // the plan, JSON
	statusNumber  = 4 // why the launch failed, text; closed by a successful exec
	controlNumber = 5 // SOCK_SEQPACKET to the monitor
	firstNumber   = 6 // the task's descriptors, in the plan's order
)

// launcherOffset keeps the reserved numbers occupied in the launcher from its first
// instruction on. The Go runtime opens descriptors of its own (the poller's, as soon as
// any linked package makes a timer). They must not land where the task's descriptors are
// placed later.
const launcherOffset = wire.FDReservedEnd - planNumber

// parkedNumber is the first number at which the launcher keeps descriptors while it fills
// the reserved numbers. It is above everything that the Go runtime opens by itself.
const parkedNumber = 512

// launchPlan is what the launcher gets: the plan, and what was made for the task.
type launchPlan struct {
	plan.Plan
	Enclosure enclosure
}

// LaunchMain must be the first call in main and in TestMain of every program that uses
// this package. In the processes that [Backend.Start] makes, it takes over and does not
// return. In all others it does nothing.
func LaunchMain() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case keeperName:
		runtime.LockOSThread() // the launcher's death signal follows this thread
		os.Exit(keep())
	case launcherName:
		// On Linux, the confinement binds the calling thread, and exec ends all others:
		// this thread becomes the task.
		runtime.LockOSThread()
		err := carryOut()
		unix.Write(statusDescriptor, []byte(err.Error()))
		os.Exit(127)
	}
	if role, known := roles[os.Args[1]]; known {
		role()
		os.Exit(0)
	}
}

// roles are what else a process of this same binary can be, by its only argument.
var roles = map[string]func(){}

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
	opened, err := todo.open()
	if err != nil {
		return err
	}
	if err := todo.place(parked.files); err != nil {
		return err
	}
	return todo.execute(opened, parked.control)
}

func readPlan(descriptor int) (launchPlan, error) {
	// os.File is not used here: it would start the runtime's poller, whose descriptors
	// could occupy reserved numbers.
	var text []byte
	buffer := make([]byte, 1<<16)
	for {
		count, err := unix.Pread(descriptor, buffer, int64(len(text)))
		if err != nil {
			return launchPlan{}, fmt.Errorf("read launch plan: %w", err)
		}
		if count == 0 {
			break
		}
		text = append(text, buffer[:count]...)
	}
	var todo launchPlan
	if err := json.Unmarshal(text, &todo); err != nil {
		return launchPlan{}, fmt.Errorf("read launch plan: %w", err)
	}
	return todo, nil
}

type parkedDescriptors struct {
	status, control int
	files           []int
}

// park duplicates the inherited descriptors to high numbers.
func park(files int) (parkedDescriptors, error) {
	var parked parkedDescriptors
	for number := statusNumber; number < firstNumber+files; number++ {
		high, err := unix.FcntlInt(uintptr(number+launcherOffset), unix.F_DUPFD_CLOEXEC, parkedNumber)
		if err != nil {
			return parked, fmt.Errorf("park descriptor %d above %d (is the limit of open files too low?): %w", number,
				parkedNumber, err)
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

// prepare does everything that needs paths, while the process can still use them.
func (p launchPlan) prepare() error {
	if err := p.Enclosure.enter(); err != nil {
		return err
	}
	if p.WorkingDirectory != "" {
		if err := unix.Chdir(p.WorkingDirectory); err != nil {
			return fmt.Errorf("enter working directory %s: %w", p.WorkingDirectory, err)
		}
	}
	if len(p.CPUs) > 0 {
		if err := pin(p.CPUs); err != nil {
			return fmt.Errorf("pin to CPUs %v: %w", p.CPUs, err)
		}
	}
	return nil
}

// place puts every descriptor at its number, fills the other reserved numbers, and marks
// all other descriptors to be closed by exec.
func (p launchPlan) place(files []int) error {
	sources := map[int]int{}
	for i, number := range p.Numbers {
		sources[number] = files[i]
	}
	for i, path := range p.Capabilities {
		directory, err := openHigh(path, capabilityFlags)
		if err != nil {
			return fmt.Errorf("open capability: %w", err)
		}
		sources[wire.FDCapability+i] = directory
	}
	filler, err := openHigh("/dev/null", fillerFlags)
	if err != nil {
		return err
	}
	for number := wire.FDMonitor; number < wire.FDReservedEnd; number++ {
		source, used := sources[number]
		if !used {
			source = filler
		}
		if err := unix.Dup2(source, number); err != nil {
			return fmt.Errorf("place descriptor %d: %w", number, err)
		}
	}
	if err := closeOnExecFrom(wire.FDReservedEnd); err != nil {
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

// readStatus returns the error that a launcher reported, or "" once it has become the
// task.
func readStatus(status *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(status, 1<<16))
	return string(text), err
}
