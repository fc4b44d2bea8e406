// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// requests answers the notifications of one task: of the program and of every process
// that it forks.
type requests struct {
	arbiter
	listener listener
	// supervised says that the task has a supervisor, which has answered what it may answer
	// by itself. Each process then has one thread.
	supervised bool
	raising    Raising // nil if the task may not raise its taint
	seals      *seals  // nil if the task has no supervisor
	// isolates says that the task serves users: its processes must share nothing.
	isolates bool
	hides    bool // names that the task's user could not find
	// The monitor resolves the paths of a task that has a root of its own in this root, -1
	// without one, with a working directory that never changes.
	root int
	home string
	// unmapped are directories in which the monitor, other than the task, sees files of the user's
	// Files as those of this user.
	unmapped []string
	// mayExecute permits the launcher's one exec. It is used up before the task's program
	// runs an instruction.
	mayExecute atomic.Bool
	slots      chan struct{}
	running    sync.WaitGroup
	cancel     context.CancelFunc
}

// newRequests takes over the listener.
func newRequests(task *task, l listener, spec Spec, todo launchPlan, decider Decider) (*requests, error) {
	q := &requests{arbiter: arbiter{task: task, decider: decider, permits: permitsOf(spec), user: spec.User,
		foreign: spec.Foreign},
		listener: l, supervised: isSupervised(spec), raising: spec.Raising,
		isolates: spec.Serving && spec.waived&plan.NothingShared == 0,
		hides:    spec.waived&plan.HiddenNames == 0,
		slots:    make(chan struct{}, requestsAtATime), root: -1}
	q.context, q.cancel = context.WithCancel(context.Background())
	q.mayExecute.Store(true)
	if len(todo.Root) == 0 {
		return q, nil
	}
	q.home = relative(spec.WorkingDirectory)
	root, err := quietRoot()
	if err != nil {
		q.end()
		return nil, err
	}
	q.root = root
	if spec.User != nil && spec.User.Files != 0 {
		q.unmapped = realPaths(spec.Owned)
	}
	return q, nil
}

// userAt returns the user with whose rights the monitor acts on a file at a path for the task.
func (q *requests) userAt(path string) *plan.User {
	if q.user != nil && plan.Beneath(path, q.unmapped...) {
		return &plan.User{ID: q.user.Files, Group: q.user.Group}
	}
	return q.user
}

func realPaths(names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, realPath(name))
	}
	return paths
}

// attendTo begins to answer the notifications of a task that has no supervisor. It takes
// over the listener.
func attendTo(task *task, l listener, spec Spec, todo launchPlan, decider Decider) (attendance, error) {
	q, err := newRequests(task, l, spec, todo, decider)
	if err != nil {
		return nil, err
	}
	return listen(q)
}

// begin handles a notification in a goroutine of its own.
func (q *requests) begin(n notification, session uint64) {
	r := &request{notification: n, requests: q, session: session, call: plan.CallOf(n.Number)}
	q.running.Add(1)
	go r.handle()
}

// end waits until no request is being handled any more, and closes the listener. Nothing
// may begin afterwards.
func (q *requests) end() {
	q.cancel()
	q.running.Wait()
	if q.listener >= 0 {
		unix.Close(int(q.listener))
	}
	if q.root >= 0 {
		unix.Close(q.root)
	}
}

// request is a notification that is being answered.
type request struct {
	notification
	requests *requests
	session  uint64 // of the caller, as its supervisor says
	call     plan.Call
	group    int // the caller's process, 0 until it is needed
}

// handle answers the request exactly once, even if the handler panics.
func (r *request) handle() {
	defer r.requests.running.Done()
	defer func() {
		if failure := recover(); failure != nil {
			recovered(failure)
			r.fail(unix.EACCES)
		}
	}()
	r.requests.slots <- struct{}{}
	defer func() { <-r.requests.slots }()
	handler, known := handlers[r.call.Name]
	if !known {
		r.refuse(errRefused)
		return
	}
	err := handler(r)
	var errno unix.Errno
	var why refusal
	switch {
	case err == nil || errors.Is(err, errGone):
	case errors.As(err, &why):
		r.refuse(why)
	case exhausted(err) && errors.As(err, &errno):
		r.report(RefusedCall{Errno: errno, Unavailable: true})
		r.fail(errno)
	case errors.As(err, &errno) && errno != 0:
		r.fail(errno)
	default:
		r.fail(unix.EACCES)
	}
}

// refuse answers with the call's own error and reports it.
func (r *request) refuse(why refusal) {
	errno := syscall.Errno(r.call.Refusal())
	r.report(RefusedCall{Errno: errno, Reason: string(why)})
	r.fail(errno)
}

// report looks the caller up while the caller waits: later its number may be another's.
func (r *request) report(call RefusedCall) {
	from, err := r.caller()
	if err != nil {
		from.PID = int(r.PID)
	}
	call.Caller, call.Call = from, r.call.Name
	r.requests.report(call)
}

// fail answers with an error. It does not matter if the caller has gone in the meantime.
func (r *request) fail(errno syscall.Errno) {
	r.requests.listener.respond(response{ID: r.ID, Error: -int32(errno)})
}

// succeed answers with a value.
func (r *request) succeed(value int) error {
	r.requests.listener.respond(response{ID: r.ID, Value: int64(value)})
	return nil
}

// proceed lets the kernel execute the call. It may be used only if the input of the
// decision cannot change any more: for scalar arguments, and for the one exec before the
// task's program runs. It must never be used for a call that takes a path, since another
// thread can rewrite the path in memory.
func (r *request) proceed() error {
	r.requests.listener.respond(response{ID: r.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
	return nil
}

// descriptor returns an argument's low word, which is what the kernel uses as the
// descriptor.
func (r *request) descriptor(index int) int { return int(int32(r.Arguments[index])) }

func (r *request) proc(file string) string {
	return "/proc/" + strconv.Itoa(int(r.PID)) + "/" + file
}

// caller returns the process that made the call, and its session.
func (r *request) caller() (Caller, error) {
	process, err := r.process()
	return Caller{PID: process, Session: r.session}, err
}

// process returns the caller's process number. Notifications carry the thread's number,
// which is the process's where each process has one thread.
func (r *request) process() (number int, err error) {
	if r.requests.supervised {
		return int(r.PID), nil
	}
	if r.group == 0 {
		r.group, err = r.threadGroup()
	}
	return r.group, err
}

// threadGroup asks the kernel for the caller's process number.
func (r *request) threadGroup() (int, error) {
	text, err := r.status("Tgid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
