// SPDX-License-Identifier: BSD-2-Clause

// Package plan computes how a task is confined, and does nothing: it makes no system
// call, so that all of it is tested on every system. Package sandbox carries plans out.
//
//	spec.go                   what a task is and may do
//	plan.go                   what its launcher will do
//	permit.go                 what needs no decision of the monitor
//	protection.go             what the sandbox's tests switch off
//
// For Linux:
//
//	syscalls.go, callnames.go what happens to every system call
//	filter.go, arguments.go   the seccomp program computed from it
//	sealed.go                 the one that a worker gets when it is sealed
//	perimeter.go              the Landlock domain
//
// For FreeBSD, where no calls are filtered:
//
//	capsicum.go               rights of every descriptor of a task
package plan

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
)

// Plan is everything that the launcher of a task does, computed in advance. The launcher
// carries the plan out and decides nothing.
type Plan struct {
	Name             string
	Command          []string
	Environment      []string
	WorkingDirectory string
	// Numbers of the inherited descriptors, in the order of inheritance.
	Numbers      []int
	Capabilities []string // directories, for FDCapability and up
	CPUs         []int
	Limits       Limits
	User         *User                // nil: the monitor's
	Privileged   bool                 // keeps the monitor's privileges; only in tests
	Root         []ExecutedFile       // of a root of its own; empty: the monitor's root
	Perimeter    *Perimeter           // nil: no Landlock domain
	Filter       []bpf.RawInstruction // whose notifications the monitor answers; empty: none
	Baseline     []bpf.RawInstruction // a filter that asks nobody; empty: none
	Capsicum     *Capsicum            // nil: no capability mode
	HidesReads   bool                 // gives the task mounts of its own
	Owned        []string             // directories of which it gets mounts with other owners
	Covered      []string             // directories that it sees empty, if they exist
}

// Input is everything that a plan depends on.
type Input struct {
	Spec
	Numbers []int // reserved numbers at which the task gets descriptors, ascending
	Machine Machine
	Waived  Protection // none, but in the sandbox's own tests
}

// Machine is the part of the input that depends on the machine. On FreeBSD nothing does.
type Machine struct {
	Landlock     int            // ABI
	Notification bool           // seccomp user notification with killable waiting
	HidesReads   bool           // mounts without times of access
	Mounts       bool           // detached mounts, and the privileges to make them
	Executed     []ExecutedFile // that the kernel reads to execute the command
}

// ExecutedFile is a file that the kernel reads to execute a program.
type ExecutedFile struct {
	Name string // by which the kernel looks for it
	Path string // the real one
}

// givesRoot reports whether the sessions of a task open documents natively: the task has a
// root of its own, and its sessions get detached mounts. Otherwise the monitor opens every
// document for them.
func (in Input) givesRoot() bool { return in.Serving && in.Machine.Mounts }

// coverable returns the covered directories that hold nothing of what the task is given.
func (in Input) coverable() []string {
	leading := leadingTo(slices.Concat(in.paths(), in.Owned, in.Command[:1]))
	return slices.DeleteFunc(slices.Clone(in.Covered), func(one string) bool { return leading[one] })
}

// waives reports whether a test has switched the protection off.
func (in Input) waives(p Protection) bool { return in.Waived&p != 0 }

// common checks the input and computes the part of the plan that is the same on all
// systems.
func (in Input) common() (Plan, error) {
	if err := in.Check(); err != nil {
		return Plan{}, err
	}
	result := Plan{
		Name: in.Name, Command: in.Command, Environment: in.Environment, WorkingDirectory: in.WorkingDirectory,
		CPUs: in.CPUs, Limits: in.Limits, User: in.User, Privileged: in.waives(NoPrivileges), Numbers: in.Numbers,
	}
	for _, capability := range in.Capabilities {
		result.Capabilities = append(result.Capabilities, capability.Path)
	}
	return result, nil
}

// ForLinux checks the input and computes the plan for Linux. The error wraps
// [ErrUnsupported] if the machine cannot confine the task.
func ForLinux(in Input) (Plan, error) {
	result, err := in.common()
	if err != nil {
		return result, err
	}
	isOwner := in.User != nil && in.User.Files != 0 && !in.waives(MappedOwners)
	if in.Machine.Mounts && !in.waives(HiddenNames) {
		result.Covered = in.coverable()
	}
	if !in.Confined {
		if isOwner {
			result.Owned = in.Owned
		}
		if !in.waives(SyscallFilter) {
			result.Baseline, err = bpf.Assemble(baselineFilter())
		}
		return result, err
	}
	// The domain is computed, and the machine thereby checked, even if a test waives the
	// domain.
	domain, err := taskPerimeter(in)
	if err == nil && !in.Machine.Notification {
		err = fmt.Errorf("seccomp user notification with killable waiting not found (Linux 5.19 has it): %w",
			ErrUnsupported)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("task %s: %w", in.Name, err)
	}
	// In a root of its own, a task opens on mounts without times of access alone.
	result.HidesReads = in.Machine.HidesReads && !in.givesRoot() && !in.waives(HiddenReads)
	if !in.waives(PerimeterDomain) {
		result.Perimeter = &domain
	}
	switch ownRoot := in.givesRoot() && !in.waives(EmptyRoot); {
	case ownRoot:
		result.Root, result.Covered = in.Machine.Executed, nil
	case isOwner:
		result.Owned = in.Owned
	}
	if !in.waives(SyscallFilter) {
		scoped := domain.Scope&scopeSignal != 0 && !in.waives(PerimeterDomain)
		result.Filter, err = bpf.Assemble(taskFilter(filterSpec{waived: in.Waived, serving: in.Serving,
			raises: in.Raises, ownRoot: in.givesRoot(), signalsScoped: scoped}))
	}
	return result, err
}
