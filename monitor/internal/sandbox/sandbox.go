// SPDX-License-Identifier: BSD-2-Clause

// Package sandbox confines tasks with the operating system's own means: Landlock
// and seccomp on Linux, Capsicum on FreeBSD. It carries out decisions and takes none: it asks a
// [Decider] about every access that the kernel does not allow natively.
package sandbox

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// ErrUnsupported is wrapped by every error that says this machine lacks a
// kernel feature the backend needs; the text names the feature and the kernel
// version that has it.
var ErrUnsupported = errors.New("sandbox not supported on this machine")

// Rights on a directory hierarchy.
type Rights uint32

// The rights a task can hold on a hierarchy.
const (
	Read    Rights = 1 << iota // open for reading, list
	Write                      // write, truncate, create, rename, link within, remove
	Execute                    // execute, used for a task's runtime only
	List                       // list directories, and read no file
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

// Spec says what to start and what it may do from its first instruction on.
type Spec struct {
	Name             string   // task name, for messages
	Command          []string // argv; Command[0] is an absolute path
	Environment      []string // complete environment, "K=V"
	WorkingDirectory string
	// Runtime hierarchies (interpreter, libraries): read and execute. Opens
	// beneath them by plain path are answered by the backend without asking
	// the Decider, unless the file has other names too. They are real paths: no
	// symbolic link is followed when they are granted.
	Runtime []string
	// RuntimeNames are other names of these hierarchies, symbolic links, which the
	// task may look at.
	RuntimeNames []string
	// Perimeter is everything else the kernel lets the task reach natively.
	Perimeter    []Directory
	Capabilities []Capability
	// Descriptors are placed at their reserved numbers (wire.FD…); Start
	// duplicates them and leaves the originals open.
	Descriptors map[int]*os.File
	Stdout      *os.File
	Stderr      *os.File
	// Confined is false only in mode baseline: the command starts with the same
	// descriptors and no sandbox at all.
	Confined bool
	// User is who the program runs as, in all modes; nil is who the monitor is. Only the
	// superuser can give another. The program has no capabilities either way.
	User *User
	// Serving says that the processes that the program forks serve users' sessions.
	// They cannot fork in their turn: what they forked would outlive the session. On
	// Linux there are no threads in such a task, and no processes that share memory or
	// descriptors.
	Serving bool
	waived  protection // by this package's tests
	// CPUs, when not empty, pins the task (sched_setaffinity).
	CPUs []int
	// Limits hold for each of the task's processes, confined or not, which cannot
	// raise them.
	Limits Limits
}

// Limits are what a process may use; 0 is what the monitor itself may.
type Limits struct {
	Memory    uint64 // bytes of private writable memory (RLIMIT_DATA); on FreeBSD, of all that is mapped (RLIMIT_AS)
	OpenFiles uint64 // one more than the highest descriptor (RLIMIT_NOFILE); above wire.FDReservedEnd
}

// OpenRequest is a path open (or stat) that the kernel does not allow natively.
type OpenRequest struct {
	Task  Task
	PID   int
	Path  string // real path of the pinned file; for a creation, of its parent joined with the new name
	Flags int    // open flags; O_PATH for stat and access checks
	New   bool   // the last component does not exist and O_CREAT asks for it
	// Shared, when set, is a file of the runtime that has other names, hard links. It is
	// the task's unless one of them is a conduit.
	Shared *SharedFile
}

// SharedFile is a file with several names, as the kernel knows it.
type SharedFile struct {
	Device, Inode uint64
	Changed       time.Time // when a name was added or removed last, or later
}

// Verdict is the answer to a request.
type Verdict struct {
	Errno  syscall.Errno // 0 allows
	Reason string        // for the audit log and for people
}

// Accepted is what a worker's accept4 hands it. Every descriptor is placed at its
// number in the worker in one step, and the worker's own copy of the number, if
// any, is replaced. The backend closes the files afterwards.
type Accepted struct {
	Descriptors map[int]*os.File // among them wire.FDMonitor
	Connection  int              // the number accept4 returns: wire.FDConnection or wire.FDConnectionChecked
}

// Decider is asked whenever a task does something the kernel does not allow
// natively. Methods are called concurrently. A panic, an expired context or a
// missing Decider is a denial.
type Decider interface {
	// Open decides on an open or stat by path.
	Open(ctx context.Context, request OpenRequest) Verdict
	// Accept blocks until there is a connection for the worker. ctx ends when it is
	// gone. Once Accept has succeeded, the worker is the session's: whoever began it
	// waits until the worker is gone.
	Accept(ctx context.Context, task Task, worker Worker) (*Accepted, error)
	// Send decides on one write to a checked connection or channel; the
	// descriptor number tells which.
	Send(ctx context.Context, task Task, pid int, number int) Verdict
	// Refused reports a system call that was refused without asking.
	Refused(refused RefusedCall)
}

// RefusedCall is a system call that the backend refused by itself.
type RefusedCall struct {
	Task   Task
	PID    int
	Call   string
	Errno  syscall.Errno
	Reason string // "" where the call's name says it
}

// Worker is a process of a task for as long as it serves one user. Safe for
// concurrent use.
type Worker interface {
	// PID is the process. The number may be another's once the worker is gone.
	PID() int
	// Kill ends the session at once, and the process with it. It does not wait.
	Kill()
	// Gone is closed when nothing of the session is left: the process has ended, or,
	// where workers are reset, is as it was before the session.
	Gone() <-chan struct{}
	// Ended is the same, asked of the kernel at this moment: until it says so, PID is
	// this worker's and no other's.
	Ended() bool
}

// Task is a started, confined program.
type Task interface {
	Name() string
	PID() int
	// Done is closed when the program has ended; Err then says how.
	Done() <-chan struct{}
	Err() error
	// Stop asks with SIGTERM, and kills when ctx ends first. It returns when the
	// program and every process it forked are gone.
	Stop(ctx context.Context) error
}

// Ruleset is a prepared perimeter that a running worker restricts itself to.
// File is passed to the worker; the caller closes it.
type Ruleset struct{ File *os.File }

// Feature is one line of what a machine can enforce.
type Feature struct {
	Name    string `json:"name"`    // "Landlock"
	Found   string `json:"found"`   // "ABI 7", or "missing"
	Needed  string `json:"needed"`  // "ABI 4 (Linux 6.7)"
	Present bool   `json:"present"` // whether it is sufficient
	Effect  string `json:"effect"`  // what it enforces
}

// Report says what a machine can enforce.
type Report struct {
	System      string    `json:"system"`      // "linux 6.18.1 x86_64"
	Backend     string    `json:"backend"`     // "landlock+seccomp"
	Enforcement string    `json:"enforcement"` // "full", "partial" or "none"
	Features    []Feature `json:"features"`
}

// Backend starts tasks under one operating system's sandbox. It is safe for
// concurrent use.
type Backend interface {
	// Probe examines the machine; it changes nothing.
	Probe() Report
	// Start launches the program. It returns once the sandbox is in force and
	// the program has begun, or an error wrapping ErrUnsupported where the
	// machine cannot confine it: it never starts a confined task unconfined.
	Start(ctx context.Context, spec Spec, decider Decider) (Task, error)
	// PrepareRuleset builds a perimeter of readable directories ahead of need.
	PrepareRuleset(directories []Directory) (*Ruleset, error)
}
