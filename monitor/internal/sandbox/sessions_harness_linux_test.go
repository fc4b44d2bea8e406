// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// supervisorPath builds shai-supervisor once.
var supervisorPath = sync.OnceValues(func() (string, error) {
	if output, err := exec.Command("make", "-s", "-C", "../../../supervisor", "all").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build shai-supervisor: %w\n%s", err, output)
	}
	return filepath.Abs("../../../build/supervisor/shai-supervisor")
})

func newBackend(t testing.TB) Backend {
	t.Helper()
	path, err := supervisorPath()
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Supervisor: path})
}

// testSessions is the monitor of a task whose users do not log in.
type testSessions struct {
	slots, idle uint32
	address     string
	begin       error           // Begin's answer
	files       [3]*os.File     // those of the settings
	outcome     chan struct{}   // closed when a worker has ended with a status other than 0
	begun       chan Supervisor // has the supervisor when Begin has returned

	mutex   sync.Mutex
	status  int
	events  []supervision.Event
	records []supervision.Record // all that are no events

	unsealed  []string // why workers were not sealed
	discarded []string // how workers differed
}

var _ Sessions = (*testSessions)(nil)

func newSessions(t testing.TB, slots uint32) *testSessions {
	t.Helper()
	s, err := makeSessions(t.TempDir(), slots)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, file := range s.files {
			file.Close()
		}
	})
	return s
}

// makeSessions makes a listening socket, a view of a directory and an empty class table.
func makeSessions(view string, slots uint32) (*testSessions, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	s := &testSessions{slots: slots, idle: slots, address: listener.Addr().String(), outcome: make(chan struct{}),
		begun: make(chan Supervisor, 1)}
	var problems [3]error
	s.files[0], problems[0] = listener.(*net.TCPListener).File()
	s.files[1], problems[1] = os.Open(view)
	s.files[2], problems[2] = memory("classes")
	return s, errors.Join(problems[:]...)
}

// workers tells what workers say about an attempt.
type workers struct {
	over    <-chan struct{} // closed when one has decided
	decided func() int      // its status, 0 if none has
}

// withSessions gives a task that serves users sessions, if it has none.
func withSessions(t *testing.T, spec *Spec) workers {
	t.Helper()
	if !spec.Serving || !spec.Confined {
		return workers{decided: func() int { return 0 }}
	}
	if spec.Sessions == nil {
		spec.Sessions = newSessions(t, 1)
	}
	s := spec.Sessions.(*testSessions)
	return workers{s.outcome, func() int {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		return s.status
	}}
}

// Begin implements [Sessions].
func (s *testSessions) Begin(_ Task, supervisor Supervisor) error {
	if s.begin != nil {
		return s.begin
	}
	err := supervisor.Send(supervision.Settings{Mode: wire.ModeShai, Slots: s.slots, IdleMax: s.idle, MountsMax: 1,
		Waiting: 16, SessionsPerWorker: 1024, Service: "test", Pipeline: "test"}, s.files[:]...)
	for slot := range s.slots {
		if err == nil {
			err = supervisor.Send(supervision.Slot{Slot: slot})
		}
	}
	if err == nil {
		err = supervisor.Send(supervision.Begin{})
	}
	s.begun <- supervisor
	return err
}

// Receive implements [Sessions].
func (s *testSessions) Receive(record supervision.Record) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	events, isEvents := record.(supervision.Events)
	if !isEvents {
		s.records = append(s.records, record)
		return
	}
	s.events = append(s.events, events.Events...)
	for _, event := range events.Events {
		var status int
		if _, err := fmt.Sscanf(event.Reason, "the worker exited with status %d", &status); err == nil && status != 0 &&
			s.status == 0 {
			s.status = status
			close(s.outcome)
		}
	}
}

// Unsealed implements [Sessions].
func (s *testSessions) Unsealed(reason error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.unsealed = append(s.unsealed, reason.Error())
}

// Discarded implements [Sessions].
func (s *testSessions) Discarded(_ int, difference error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.discarded = append(s.discarded, difference.Error())
}

// of returns the events of a kind.
func (s *testSessions) of(kind supervision.EventKind) (found []supervision.Event) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, event := range s.events {
		if event.Kind == kind {
			found = append(found, event)
		}
	}
	return found
}

// connect returns a connection of a user who says something.
func (s *testSessions) connect(t *testing.T, word string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", s.address)
	check(t, err)
	t.Cleanup(func() { connection.Close() })
	_, err = connection.Write([]byte(word))
	check(t, err)
	return connection
}
