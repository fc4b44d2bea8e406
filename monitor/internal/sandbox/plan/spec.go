// SPDX-License-Identifier: BSD-2-Clause

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"

	"shai.dev/monitor/internal/wire"
)

// ErrUnsupported is wrapped by every error that says that this machine lacks a kernel
// feature that the sandbox needs. The error's text names the feature and the first kernel
// version that has it.
var ErrUnsupported = errors.New("sandbox not supported on this machine")

// Rights are access rights on a directory hierarchy.
type Rights uint32

// The rights a task can hold on a hierarchy.
const (
	Read    Rights = 1 << iota // open for reading, list
	Write                      // write, truncate, create, rename, link within, remove
	Execute                    // execute, used for a task's runtime only
	List                       // list directories, and read no file
	Names                      // create, rename, link within, remove, and open no file
	Move                       // rename and link from one hierarchy to another that has it and may be read and written
)

// Directory is a hierarchy granted in the kernel's perimeter.
type Directory struct {
	Path   string // absolute; must exist
	Rights Rights
}

// Capability is a directory descriptor that the task holds at
// wire.FDCapability+i. Opens relative to it run natively, within the perimeter.
type Capability struct {
	Prefix string // the path libshai maps onto the descriptor, such as "/shai/view"
	Path   string // the directory itself
}

// User is the user and group that a task runs as. It has no supplementary groups.
type User struct {
	ID, Group uint32
	// Files is the user to whom the files in [Spec.Owned] belong, if it is another one; otherwise
	// 0. Only Linux has it.
	Files uint32
}

// Permits reports whether a file's mode gives the user all of the bits: 4 read, 2 write,
// 1 search or execute. It ignores access control lists.
func (u User) Permits(owner, group, mode, bits uint32) bool {
	switch {
	case owner == u.ID:
		mode >>= 6
	case group == u.Group:
		mode >>= 3
	}
	return mode&bits == bits
}

// Limits are the resource limits of each process of a task, and of the task as a whole; 0 means
// the monitor's own limit, or none.
type Limits struct {
	Memory    uint64 // bytes of private writable memory (RLIMIT_DATA); on FreeBSD, of all mapped memory (RLIMIT_AS)
	OpenFiles uint64 // one more than the highest descriptor (RLIMIT_NOFILE); above wire.FDReservedEnd
	// Processes is how many processes and threads the task has at most. If the machine cannot
	// limit them, the task does not start, but if this is 0: see [Spec.MaxProcesses].
	Processes uint64
	// CPU is the processor time that the task takes at most, in thousandths of a processor, and
	// TotalMemory the memory that it takes in bytes, with what the kernel keeps for it, such as
	// pages of files. If the machine cannot limit them, the task does not start.
	CPU, TotalMemory uint64
}

// DefaultProcesses is the limit on the processes and threads of a task whose specification
// has none: enough for a virtual machine with threads for each of many CPUs, and far
// below what a kernel can hold.
const DefaultProcesses = 1024

// MaxProcesses returns how many processes and threads the task may have. A confined one that
// serves users needs no more than its program, its workers and, before, the threads of the
// launcher.
func (spec Spec) MaxProcesses() uint64 {
	const launcherThreads = 32 // more than the Go runtime makes
	if !spec.Confined || !spec.Serving {
		return cmp.Or(spec.Limits.Processes, DefaultProcesses)
	}
	needed := uint64(spec.Workers) + 1 + launcherThreads
	return min(needed, cmp.Or(spec.Limits.Processes, needed))
}

// Spec describes a task and its rights from its first instruction on.
type Spec struct {
	Name             string   // task name, for messages
	Command          []string // argv; Command[0] is an absolute path
	Environment      []string // complete environment, "K=V"
	WorkingDirectory string
	// Runtime lists hierarchies (interpreter, libraries) that the task may read and
	// execute. The sandbox opens files beneath them for the task without asking the
	// monitor, unless the file has other names too. Natively the task opens only the
	// program and its interpreters ([ExecutedFile]). They are real paths: no symbolic link
	// is followed when they are granted.
	Runtime []string
	// RuntimeNames are symbolic links to these hierarchies, which the task may look at.
	RuntimeNames []string
	// Perimeter lists everything else that the kernel allows the task natively.
	Perimeter    []Directory
	Capabilities []Capability
	// Confined is false only in mode baseline: the command then starts with the same
	// descriptors and without a sandbox.
	Confined bool
	// User is the user that the program runs as, in all modes; nil is the monitor's own.
	// Only the superuser can set another. The program never has capabilities.
	User *User
	// Owned are directories with files that belong to the user User.Files. The task sees, and makes,
	// them as files of its own user. They must exist.
	Owned []string
	// Covered are directories of others: the task sees an empty one in the place of each that exists
	// when it starts, where the machine can do that. One that holds what the task is given stays.
	Covered []string
	// Serving says that the program forks processes that serve users' sessions. Those
	// processes cannot fork themselves, since their children would outlive the session.
	// On Linux such a task can make no threads, and no processes that share memory or
	// descriptors.
	Serving bool
	// Raises says that the program may register again, to raise its taint. On Linux such a
	// task is one process, which may have threads, and what it writes to the monitor waits
	// for an answer. On FreeBSD the process is stopped while it registers again.
	Raises bool
	// Workers is how many of those processes there are at most at the same time.
	Workers int
	// CPUs, when not empty, pins the task (sched_setaffinity).
	CPUs []int
	// Limits hold in all modes. The processes cannot raise them.
	Limits Limits
}

// Check reports what is wrong with the specification and the numbers.
func (in Input) Check() error {
	if err := in.check(); err != nil {
		return fmt.Errorf("task %s: %w", in.Name, err)
	}
	return nil
}

func (in Input) check() error {
	if len(in.Command) == 0 || !path.IsAbs(in.Command[0]) {
		return fmt.Errorf("command %q does not begin with an absolute path", in.Command)
	}
	if len(in.Capabilities) > wire.FDCapabilityCount {
		return fmt.Errorf("%d capabilities, at most %d have a number", len(in.Capabilities), wire.FDCapabilityCount)
	}
	if files := in.Limits.OpenFiles; files != 0 && files <= wire.FDReservedEnd {
		return fmt.Errorf("a limit of %d open files; %d are reserved", files, wire.FDReservedEnd)
	}
	if user := in.User; user != nil && (user.ID == 0 || user.Group == 0) {
		return fmt.Errorf("user %d, group %d: a task is never the superuser", user.ID, user.Group)
	}
	for _, number := range in.Numbers {
		isCapability := number >= wire.FDCapability && number < wire.FDCapability+wire.FDCapabilityCount
		if number < wire.FDMonitor || number >= wire.FDReservedEnd || isCapability {
			return fmt.Errorf("descriptor %d is not a reserved number for a file", number)
		}
	}
	for _, one := range slices.Concat(in.paths(), in.Owned) {
		if !path.IsAbs(one) {
			return fmt.Errorf("%q is not an absolute path", one)
		}
	}
	return nil
}

// paths returns all directories that a specification gives the task a right to.
func (spec Spec) paths() []string {
	paths := spec.given()
	if spec.WorkingDirectory != "" {
		paths = append(paths, spec.WorkingDirectory)
	}
	return paths
}

// given returns the same without the working directory, of which the task knows no more than its
// user.
func (spec Spec) given() []string {
	paths := slices.Concat(spec.Runtime, spec.RuntimeNames)
	for _, directory := range spec.Perimeter {
		paths = append(paths, directory.Path)
	}
	for _, capability := range spec.Capabilities {
		paths = append(paths, capability.Path)
	}
	return paths
}
