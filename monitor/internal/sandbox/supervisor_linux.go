// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/sealing"
	"shai.dev/monitor/internal/supervision"
)

// supervisorName is what the process of a supervisor is called.
const supervisorName = "shai-supervisor"

// sendingLimit is how long a supervisor may not read.
const sendingLimit = 10 * time.Second

// isSupervised reports whether a task has a supervisor, a process of shai-supervisor, in
// place of a keeper.
func isSupervised(spec Spec) bool { return spec.Confined && spec.Serving }

// supervisor is the monitor's side of a task's supervisor. It answers the notifications
// that the supervisor passes on, and passes the other records on to the monitor.
type supervisor struct {
	sessions Sessions
	control  *net.UnixConn
	sending  sync.Mutex   // keeps records and their deadlines together
	rollback sealing.Code // there before attend is called

	mutex    sync.Mutex
	requests *requests                  // nil until answer is called
	early    []supervision.Notification // that came before
}

var _ Supervisor = (*supervisor)(nil)

// newSupervisor returns the supervisor of a task that is about to start, and how its
// process is started.
func newSupervisor(spec Spec, program string) (*supervisor, parent, error) {
	if spec.Sessions == nil {
		return nil, parent{}, errors.New("a confined task that serves users needs its sessions")
	}
	if err := unix.Access(program, unix.X_OK); err != nil {
		return nil, parent{}, fmt.Errorf("a task with sessions needs shai-supervisor, and %s cannot be executed: %w; "+
			"build it with make build, or name it with --supervisor", program, err)
	}
	s := &supervisor{sessions: spec.Sessions}
	return s, parent{
		name: "supervisor", program: program,
		// What it starts as the launcher: /proc/self/exe would be itself.
		arguments: []string{supervisorName, programOf(os.Getpid()), fmt.Sprint(len(spec.Descriptors))},
		receive:   s.receive,
		terminate: func(*net.UnixConn) { _ = s.Send(supervision.Terminate{}) },
		// The filter keeps them in the task's process group.
		dismissible: true,
	}, nil
}

// Send implements [Supervisor].
func (s *supervisor) Send(record supervision.Record, files ...*os.File) error {
	text, err := supervision.Encode(record)
	if err != nil {
		if _, isSet := record.(supervision.Set); !isSet {
			_ = s.control.CloseWrite() // ends the task, which has not been told something
		}
		return err
	}
	descriptors := make([]int, len(files))
	for i, file := range files {
		descriptors[i] = int(file.Fd())
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	err = s.control.SetWriteDeadline(time.Now().Add(sendingLimit))
	if err == nil {
		_, _, err = s.control.WriteMsgUnix(text, rights, nil)
	}
	if err != nil {
		_ = s.control.CloseWrite() // ends the task
		return fmt.Errorf("send to the supervisor: %w", err)
	}
	return nil
}

// receive passes records on until the supervisor has ended.
func (s *supervisor) receive(_ *net.UnixConn, messages chan<- received) {
	defer close(messages)
	record, rights := make([]byte, supervision.MaxRecord), make([]byte, unix.CmsgSpace(4))
	for {
		size, rightsSize, _, _, err := s.control.ReadMsgUnix(record, rights)
		if err != nil || size == 0 {
			return
		}
		decoded, err := supervision.Decode(record[:size])
		if err != nil {
			slog.Error("bug: a supervisor sent a record that cannot be decoded; its task is ended", "error", err)
			_ = s.control.CloseWrite()
			return
		}
		s.handle(decoded, descriptorIn(rights[:rightsSize]), messages)
	}
}

func (s *supervisor) handle(record supervision.Record, descriptor int, messages chan<- received) {
	switch content := record.(type) {
	case supervision.Started:
		s.rollback = readRollback(descriptor)
		messages <- received{controlMessage{Kind: "started", PID: int(content.PID)}, -1}
	case supervision.Listener:
		messages <- received{controlMessage{Kind: "listener"}, descriptor}
	case supervision.Ended:
		messages <- received{controlMessage{Kind: "ended", Status: content.Status}, descriptor}
	case supervision.Notification:
		s.notified(content)
	case supervision.Compare:
		s.compare(content)
	default:
		s.sessions.Receive(record)
	}
}

// notified begins to answer a notification, or keeps it until answer is called.
func (s *supervisor) notified(content supervision.Notification) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.requests == nil {
		s.early = append(s.early, content)
		return
	}
	s.requests.begin(*(*notification)(unsafe.Pointer(&content.Notification)), content.Session)
}

// compare begins to answer a question, which comes after a worker was sealed.
func (s *supervisor) compare(question supervision.Compare) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.requests != nil {
		s.requests.running.Add(1)
		go s.requests.compare(question)
	}
}

// attend tells the monitor that the supervisor runs, and answers notifications from then
// on: the first one is the program's execution. It takes over the listener, which is -1 if a
// test has waived the filter.
func (s *supervisor) attend(task *task, l listener, spec Spec, todo launchPlan, decider Decider) (attendance, error) {
	answering, err := newRequests(task, l, spec, todo, decider)
	if err != nil {
		return nil, err
	}
	if answering.seals, err = newSeals(s, spec); err != nil {
		answering.end()
		return nil, err
	}
	if err := s.sessions.Begin(task, s); err != nil {
		answering.end()
		return nil, err
	}
	if refusal := answering.seals.refusal; refusal != nil && spec.SessionsPerWorker > 1 {
		s.sessions.Unsealed(refusal)
	}
	s.mutex.Lock()
	s.requests = answering
	early := s.early
	s.mutex.Unlock()
	for _, content := range early {
		s.notified(content)
	}
	return s, nil
}

// stop is called when receive has returned.
func (s *supervisor) stop() { s.requests.end() }

// supervising examines how tasks with sessions run.
func supervising(program string) Feature {
	err := unix.Access(program, unix.X_OK)
	return Feature{Name: "supervisor", Found: found(err == nil, program),
		Needed: "shai-supervisor beside shai (make build), or --supervisor", Present: err == nil,
		Effect: "isolates the sessions of a task's users; without it confined tasks with sessions do not start"}
}
