// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/net/bpf"

	"shai.dev/monitor/internal/wire"
)

// plan is everything that the launcher does, computed in advance. The launcher carries
// the plan out and decides nothing.
type plan struct {
	Name             string
	Command          []string
	Environment      []string
	WorkingDirectory string
	// Numbers of the inherited descriptors, in the order of inheritance.
	Numbers      []int
	Capabilities []string // directories, for FDCapability and up
	CPUs         []int
	Enclosure    enclosure // made when the task starts
	Limits       Limits
	User         *User                // nil: the monitor's
	Privileged   bool                 // keeps the monitor's privileges; only in tests
	Root         []ExecutedFile       // of a root of its own; empty: the monitor's root
	Perimeter    *perimeter           // nil: no Landlock domain
	Filter       []bpf.RawInstruction // whose notifications the monitor answers; empty: none
	Baseline     []bpf.RawInstruction // a filter that asks nobody; empty: none
	Capsicum     *capsicum            // nil: no capability mode
	HidesReads   bool                 // gives the task mounts of its own
}

// machine is the part of a plan's input that depends on the machine.
type machine struct {
	landlock     int            // ABI
	notification bool           // seccomp user notification with killable waiting
	hidesReads   bool           // mounts without times of access
	mounts       bool           // detached mounts, and the privileges to make them
	executed     []ExecutedFile // what [Executed] returns for the command
}

// givesRoot reports whether the sessions of a task open documents natively: the task has a
// root of its own, and its sessions get detached mounts. Otherwise the monitor opens every
// document for them.
func (m machine) givesRoot(spec Spec) bool { return spec.Serving && m.mounts }

// commonPlanOf checks a specification and computes the part of the plan that is the same
// on all systems.
func commonPlanOf(spec Spec) (plan, error) {
	if err := spec.check(); err != nil {
		return plan{}, fmt.Errorf("task %s: %w", spec.Name, err)
	}
	result := plan{
		Name: spec.Name, Command: spec.Command, Environment: spec.Environment,
		WorkingDirectory: spec.WorkingDirectory, CPUs: spec.CPUs, Limits: spec.Limits,
		User: spec.User, Privileged: spec.waived&noPrivileges != 0,
		Numbers: slices.Sorted(maps.Keys(spec.Descriptors)),
	}
	for _, capability := range spec.Capabilities {
		result.Capabilities = append(result.Capabilities, capability.Path)
	}
	return result, nil
}

// planOf checks a specification and computes the plan for Linux. It does no I/O.
func planOf(spec Spec, on machine) (plan, error) {
	result, err := commonPlanOf(spec)
	if err != nil {
		return result, err
	}
	if !spec.Confined {
		if spec.waived&syscallFilter == 0 {
			result.Baseline, err = bpf.Assemble(baselineFilter())
		}
		return result, err
	}
	// The domain is computed, and the machine thereby checked, even if a test waives the
	// domain.
	domain, err := taskPerimeter(on, spec)
	if err == nil && !on.notification {
		err = fmt.Errorf("seccomp user notification with killable waiting not found (Linux 5.19 has it): %w",
			ErrUnsupported)
	}
	if err != nil {
		return plan{}, fmt.Errorf("task %s: %w", spec.Name, err)
	}
	// In a root of its own, a task opens on mounts without times of access alone.
	result.HidesReads = on.hidesReads && !on.givesRoot(spec) && spec.waived&hiddenReads == 0
	if spec.waived&perimeterDomain == 0 {
		result.Perimeter = &domain
	}
	if on.givesRoot(spec) && spec.waived&emptyRoot == 0 {
		result.Root = on.executed
	}
	if spec.waived&syscallFilter == 0 {
		scoped := domain.Scope&scopeSignal != 0 && spec.waived&perimeterDomain == 0
		result.Filter, err = bpf.Assemble(Filter(FilterSpec{waived: spec.waived, Serving: spec.Serving,
			OwnRoot: on.givesRoot(spec), SignalsScoped: scoped}))
	}
	return result, err
}

func (spec Spec) check() error {
	if len(spec.Command) == 0 || !filepath.IsAbs(spec.Command[0]) {
		return fmt.Errorf("command %q does not begin with an absolute path", spec.Command)
	}
	if len(spec.Capabilities) > wire.FDCapabilityCount {
		return fmt.Errorf("%d capabilities, at most %d have a number", len(spec.Capabilities), wire.FDCapabilityCount)
	}
	if files := spec.Limits.OpenFiles; files != 0 && files <= wire.FDReservedEnd {
		return fmt.Errorf("a limit of %d open files; %d are reserved", files, wire.FDReservedEnd)
	}
	if user := spec.User; user != nil && (user.ID == 0 || user.Group == 0) {
		return fmt.Errorf("user %d, group %d: a task is never the superuser", user.ID, user.Group)
	}
	for number, file := range spec.Descriptors {
		isCapability := number >= wire.FDCapability && number < wire.FDCapability+wire.FDCapabilityCount
		if number < wire.FDMonitor || number >= wire.FDReservedEnd || isCapability || file == nil {
			return fmt.Errorf("descriptor %d is not a reserved number for a file", number)
		}
	}
	for _, path := range spec.paths() {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%q is not an absolute path", path)
		}
	}
	return nil
}

// paths returns all directories that a specification names.
func (spec Spec) paths() []string {
	paths := slices.Concat(spec.Runtime, spec.RuntimeNames)
	for _, directory := range spec.Perimeter {
		paths = append(paths, directory.Path)
	}
	for _, capability := range spec.Capabilities {
		paths = append(paths, capability.Path)
	}
	if spec.WorkingDirectory != "" {
		paths = append(paths, spec.WorkingDirectory)
	}
	return paths
}
