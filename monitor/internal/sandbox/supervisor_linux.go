// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervisor answers the notifications of one task: of the program and of every process
// that it forks.
type supervisor struct {
	arbiter
	listener listener
	workers  reservations
	// isolates says that the task serves users: its processes must share nothing.
	isolates bool
	// The monitor resolves the paths of a task that has a root of its own in this root, -1
	// without one, with a working directory that never changes.
	root int
	home string
	// mayExecute permits the launcher's one exec. It is used up before the task's program
	// runs an instruction.
	mayExecute atomic.Bool
	slots      chan struct{}
	running    sync.WaitGroup
	cancel     context.CancelFunc
	wake       int // eventfd that ends the loop
}

// newSupervisor takes over the listener.
func newSupervisor(task *task, l listener, spec Spec, todo plan, decider Decider) (*supervisor, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(int(l))
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	l.wakeSynchronously()
	s := &supervisor{arbiter: arbiter{task: task, decider: decider, permits: permitsOf(spec), user: spec.User},
		listener: l, isolates: spec.Serving && spec.waived&nothingShared == 0,
		workers: reservations{repeated: spec.waived&oneSession != 0, held: map[int]*worker{}},
		slots:   make(chan struct{}, requestsAtATime), wake: wake, root: -1}
	if len(todo.Root) > 0 {
		if s.root, err = quietRoot(); err != nil {
			unix.Close(int(l))
			unix.Close(wake)
			return nil, err
		}
		s.home = relative(spec.WorkingDirectory)
	}
	s.context, s.cancel = context.WithCancel(context.Background())
	s.mayExecute.Store(true)
	return s, nil
}

// attendTo begins to answer notifications. It takes over the listener.
func attendTo(task *task, l listener, spec Spec, todo plan, decider Decider) (attendance, error) {
	s, err := newSupervisor(task, l, spec, todo, decider)
	if err != nil {
		return nil, err
	}
	go s.serve()
	return s, nil
}

// serve receives requests until the task has ended or stop is called. It closes the
// listener when no request uses it any more.
func (s *supervisor) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for s.next() {
	}
	s.cancel()
	s.running.Wait()
	unix.Close(int(s.listener))
	unix.Close(s.wake)
	if s.root >= 0 {
		unix.Close(s.root)
	}
}

// stop ends serve. The calls that are waiting for an answer, and all later ones, fail
// with ENOSYS.
func (s *supervisor) stop() {
	unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// next waits for one request and starts to handle it. It polls first, because a mere
// receive would not notice that the task's last process has ended.
func (s *supervisor) next() bool {
	poll := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}, {Fd: int32(s.wake), Events: unix.POLLIN}}
	if _, err := unix.Poll(poll, -1); err != nil {
		return err == unix.EINTR
	}
	if poll[1].Revents != 0 {
		return false
	}
	if poll[0].Revents&unix.POLLIN == 0 {
		// Not POLLERR: a signal that interrupts the kernel's look at the listener causes it, too.
		return poll[0].Revents&unix.POLLHUP == 0
	}
	notification, errno := s.listener.receive()
	switch errno {
	case 0:
		r := &request{notification: notification, supervisor: s, call: callOf(notification.Number)}
		s.running.Add(1)
		go r.handle()
		return true
	case unix.ENOENT: // the caller died between poll and here
		return true
	}
	return false
}

// request is a notification that is being answered.
type request struct {
	notification
	supervisor *supervisor
	call       call
}

// handle answers the request exactly once, even if the handler panics.
func (r *request) handle() {
	defer r.supervisor.running.Done()
	defer func() {
		if failure := recover(); failure != nil {
			recovered(failure)
			r.fail(unix.EACCES)
		}
	}()
	if r.call.treatment != accepting {
		r.supervisor.slots <- struct{}{}
		defer func() { <-r.supervisor.slots }()
	}
	handler, known := handlers[r.call.name]
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
	case errors.As(err, &errno) && errno != 0:
		r.fail(errno)
	default:
		r.fail(unix.EACCES)
	}
}

// refuse answers with the call's own error and reports it. It looks the caller up first,
// while the caller waits: later its number may be another's.
func (r *request) refuse(why refusal) {
	errno := refusalOf(r.call)
	from, err := r.caller()
	if err != nil {
		from.PID = int(r.PID)
	}
	r.supervisor.report(from, r.call.name, errno, why)
	r.fail(errno)
}

// fail answers with an error. It does not matter if the caller has gone in the meantime.
func (r *request) fail(errno syscall.Errno) {
	r.supervisor.listener.respond(response{ID: r.ID, Error: -int32(errno)})
}

// succeed answers with a value.
func (r *request) succeed(value int) error {
	r.supervisor.listener.respond(response{ID: r.ID, Value: int64(value)})
	return nil
}

// proceed lets the kernel execute the call. It may be used only if the input of the
// decision cannot change any more: for scalar arguments, and for the one exec before the
// task's program runs. It must never be used for a call that takes a path, since another
// thread can rewrite the path in memory.
func (r *request) proceed() error {
	r.supervisor.listener.respond(response{ID: r.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
	return nil
}

// descriptor returns an argument's low word, which is what the kernel uses as the
// descriptor.
func (r *request) descriptor(index int) int { return int(int32(r.Arguments[index])) }

func (r *request) proc(file string) string {
	return "/proc/" + strconv.Itoa(int(r.PID)) + "/" + file
}

func (r *request) caller() (Caller, error) {
	process, err := r.process()
	return Caller{PID: process}, err
}

// process returns the caller's process number. Notifications carry the thread's number.
func (r *request) process() (int, error) {
	text, err := r.status("Tgid")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}
