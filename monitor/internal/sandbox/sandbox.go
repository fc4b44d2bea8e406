// SPDX-License-Identifier: BSD-2-Clause

// Package sandbox confines tasks with the operating system's own means: Landlock and
// seccomp on Linux, Capsicum on FreeBSD. It takes no decisions about policies: it asks a
// [Decider] about every access that the kernel does not allow natively.
package sandbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/supervision"
)

// Spec describes a task to start: what it is and may do, and what it gets.
type Spec struct {
	plan.Spec
	// Descriptors are placed at their reserved numbers (wire.FD…); Start
	// duplicates them and leaves the originals open.
	Descriptors map[int]*os.File
	Stdout      *os.File
	Stderr      *os.File
	// SessionsPerWorker is how many sessions a worker of a confined task that serves users
	// may have, one after the other. With less than 2 none is sealed.
	SessionsPerWorker int
	// Sessions is the monitor's side of the sessions of a confined task that serves users,
	// where [Backend.Supervises]. Other tasks have none.
	Sessions Sessions
	// Raising is the monitor's side of a confined task with [plan.Spec.Raises].
	Raising Raising
	// Foreign reports whether the file at a real path belongs to somebody else. It is asked at each
	// open in the runtime, where this may be so since the task was started, and about what the task
	// has not been given. An error denies. nil: nothing does.
	Foreign func(path string) (bool, error)
	waived  plan.Protection // by this package's tests
}

// planned returns what the plan for the task depends on, but for the machine.
func (spec Spec) planned() (plan.Input, error) {
	for number, file := range spec.Descriptors {
		if file == nil {
			return plan.Input{}, fmt.Errorf("task %s: no file for descriptor %d", spec.Name, number)
		}
	}
	return plan.Input{Spec: spec.Spec, Numbers: slices.Sorted(maps.Keys(spec.Descriptors)), Waived: spec.waived}, nil
}

// Caller is the process that makes a request.
type Caller struct {
	PID int
	// Session is the number that the task's supervisor gave the process's session; 0 if the
	// process has none, or if the task has no supervisor.
	Session uint64
}

// OpenRequest is a path open (or stat) that the kernel does not allow natively.
type OpenRequest struct {
	Task Task
	Caller
	Path  string // real path of the pinned file; for a creation, of its parent joined with the new name
	Flags int    // open flags; O_PATH for stat and access checks
	New   bool   // the last component does not exist and O_CREAT asks for it
	// Device and Inode identify the pinned file; for a creation, its parent.
	Device, Inode uint64
	// Shared is set for a file of the runtime that has other names (hard links). The task
	// may open it unless one of the names is a conduit.
	Shared *SharedFile
}

// SharedFile is a file with several names, as the kernel knows it.
type SharedFile struct {
	Device, Inode uint64
	Changed       time.Time // not before the last change of its names
}

// Verdict is the answer to a request.
type Verdict struct {
	Errno  syscall.Errno // 0 allows
	Reason string        // for the audit log and for people
}

// Accepted is what a worker's accept4 returns to it. The backend places all descriptors
// at their numbers in the worker in one step, and replaces the worker's own descriptors
// at these numbers. It does the same with standard output and error, which lead nowhere in
// a session. It closes the files afterwards.
type Accepted struct {
	Descriptors map[int]*os.File // among them wire.FDMonitor
	Connection  int              // the number accept4 returns: wire.FDConnection or wire.FDConnectionChecked
}

// Decider is asked about every action of a task that the kernel does not allow natively.
// Methods are called concurrently. A panic, an expired context or a missing Decider is a
// denial.
type Decider interface {
	// Open decides on an open or stat by path.
	Open(ctx context.Context, request OpenRequest) Verdict
	// Accept is called where the backend does not supervise. It blocks until there is a
	// connection for the worker. ctx ends when the worker ends. After Accept has succeeded,
	// the worker belongs to the session: whoever began the session waits until the worker has
	// ended.
	Accept(ctx context.Context, task Task, worker Worker) (*Accepted, error)
	// Send decides on one write to a checked connection or channel, which the descriptor
	// number identifies.
	Send(ctx context.Context, task Task, caller Caller, number int) Verdict
	// Refused reports a system call that was refused without asking.
	Refused(refused RefusedCall)
}

// RefusedCall is a system call that the backend refused by itself.
type RefusedCall struct {
	Task Task
	Caller
	Call   string
	Errno  syscall.Errno
	Reason string // "" where the call's name says it
	// Unavailable says that the monitor could not answer, since it lacks descriptors or memory.
	Unavailable bool
}

// Worker is a process of a task while it serves one user. It is safe for concurrent use.
type Worker interface {
	// PID returns the process. After the worker has ended, the number may be another's.
	PID() int
	// Kill ends the session and the process at once. It does not wait.
	Kill()
	// Gone is closed when nothing of the session is left: the process has ended, or, if
	// workers are reset, is in its state from before the session.
	Gone() <-chan struct{}
	// Ended asks the kernel whether nothing of the session is left. Until it returns
	// true, PID is this worker's and no other's.
	Ended() bool
}

// Sessions is the monitor's side of the sessions of one task that has a supervisor
// ([Backend.Supervises]). One value serves one start of a task.
type Sessions interface {
	// Begin is called once, when the supervisor runs and before the task's program does.
	// The first record to send is [supervision.Settings]. An error fails the start.
	Begin(task Task, supervisor Supervisor) error
	// Receive is called for each record of the supervisor that the backend does not handle
	// itself: for [supervision.AskBind], AskRecord, Events, Fenced and Counts. The calls come one
	// after the other, in the order of the records, and all before [Task.Done] is closed.
	// Receive must not block.
	Receive(record supervision.Record)
	// Unsealed is called when a worker cannot be rolled back, with the reason: the worker
	// serves one session. It is called concurrently, as Discarded is, and must not block.
	Unsealed(reason error)
	// Discarded is called when a worker that was rolled back is not what it was when it was
	// sealed, with the difference. It gets no other session.
	Discarded(worker int, difference error)
}

// Raising is the monitor's side of a task that may raise its taint.
type Raising interface {
	// Receive is called for each record for which the task waits: on Linux, each that it
	// writes to [wire.FDMonitor], on FreeBSD, each registration but the first. The task's call
	// returns when Receive has returned; after an error it fails. The calls for one task can
	// overlap if the task has several threads.
	Receive(record []byte, caller Stopped) error
	// Holds reports whether the task, as what it is now, has a directory with this prefix.
	Holds(prefix string) bool
}

// Stopped is a process that waits for an answer. Its methods return an error once it waits no
// longer.
type Stopped interface {
	// Writable returns what the process could write to: open files and mappings of files, but
	// not what it was given, at the number at which it was given. Pipes and sockets that the
	// process has made itself count where others could hold them.
	// If the process cannot be examined, the error is an [Unexamined]; otherwise nothing changes
	// in the process until the call is answered, but by Place.
	Writable() ([]Handle, error)
	// Place puts copies of files at numbers of the process, in the place of what is there.
	Place(files map[int]*os.File) error
}

// Handle is an open file, or a mapping of a file, that a process could write to.
type Handle struct {
	Number int // of the descriptor; -1 for a mapping
	// Path is the real path of the file; of one that was removed, the last. What has none has
	// a description, which does not begin with a slash.
	Path string
	// Given is the number at which the task was given the pipe or channel that this is a copy
	// of; 0: it is none.
	Given int
}

// ExaminedMax is how many descriptors, and how many mappings, of a process are examined.
const ExaminedMax = 1 << 14

// Unexamined is the reason for which a process cannot be examined: something of it would go on
// meanwhile, or it has too much.
type Unexamined string

func (u Unexamined) Error() string { return string(u) }

// Reasons of processes on every system.
const (
	ErrThreads = Unexamined("the task has other threads; raise its taint before they start, or after they have ended")
	ErrTooMany = Unexamined("the task has more than 16384 descriptors or mappings; close some before it raises its taint")
)

// Supervisor is where the monitor's records for a task's supervisor go. It is safe for
// concurrent use.
type Supervisor interface {
	// Send sends a record, with copies of the files. Records keep their order. After an
	// error, which includes that the supervisor has not read for 10 seconds, the task is
	// being ended; but a set that cannot be encoded ([supervision.ErrNotEncoded]) is not sent,
	// and the task goes on: without a set, sessions ask.
	Send(record supervision.Record, files ...*os.File) error
}

// Task is a started, confined program.
type Task interface {
	Name() string
	PID() int
	// Done is closed when the program has ended. Err then returns the reason.
	Done() <-chan struct{}
	Err() error
	// CPU returns the processor time so far, after the end too; 0 where the system does not tell
	// it. It does not wait for anything.
	CPU() CPU
	// Stop sends SIGTERM, and kills the task if ctx ends first. It returns when the
	// program and every process that it forked have ended, or with an error that says what
	// is left if they have not ended 10 seconds after they were killed.
	Stop(ctx context.Context) error
}

// CPU is processor time, as the kernel counts it.
type CPU struct {
	Task       time.Duration // of the task's processes
	Supervisor time.Duration // of the process between them and the monitor
}

// Native is what the sessions of one instance open natively, prepared in advance. It is
// safe for concurrent use.
type Native interface {
	// Grant returns what a session gets when its user is known.
	Grant() (Grant, error)
	// Close releases what was prepared. Sessions keep what they got.
	Close()
}

// Grant is what one session gets to open documents natively.
type Grant struct {
	// Directories are descriptors of the first of the prepared directories, in their order.
	// The monitor opens documents in the others for the session.
	Directories []*os.File
	// Decisions are those that a stub answers from, on systems where a session has one.
	Decisions *os.File
	// Release is called when the descriptors have been sent. They are not closed.
	Release func()
}

// Feature is one of a machine's features and what it enforces.
type Feature struct {
	Name    string `json:"name"`    // "Landlock"
	Found   string `json:"found"`   // "ABI 7", or "missing"
	Needed  string `json:"needed"`  // "ABI 4 (Linux 6.7)"
	Present bool   `json:"present"` // whether it is sufficient
	Effect  string `json:"effect"`  // what it enforces
}

// Report lists what a machine can enforce.
type Report struct {
	System      string    `json:"system"`      // "linux 6.18.1 x86_64"
	Backend     string    `json:"backend"`     // "landlock+seccomp"
	Enforcement string    `json:"enforcement"` // "full", "partial" or "none"
	Features    []Feature `json:"features"`
}

// Backend starts tasks in the sandbox of one operating system. It is safe for concurrent
// use.
type Backend interface {
	// Probe examines the machine; it changes nothing.
	Probe() Report
	// Start launches the program. It returns once the sandbox is in force and the program
	// has begun. If the machine cannot confine the task, it returns an error that wraps
	// [plan.ErrUnsupported]. It never starts a confined task without its sandbox.
	Start(ctx context.Context, spec Spec, decider Decider) (Task, error)
	// PrepareNative prepares directories in which a session may read all files. They must
	// exist; their paths have no symbolic links.
	PrepareNative(directories []string) (Native, error)
	// Supervises reports whether confined tasks that serve users have a supervisor, which
	// [Spec.Sessions] talks to. Otherwise [Decider.Accept] gives their workers connections.
	Supervises() bool
	// AsksBeneath reports whether tasks ask the monitor about what they may not open natively
	// beneath their directories (SHAI_RIGHT_ASK).
	AsksBeneath() bool
}

// Options say what a backend uses.
type Options struct {
	// Supervisor is the path of the program shai-supervisor, where the backend supervises.
	// Tasks that need it do not start without it.
	Supervisor string
}
