// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// maxAttempts limits how often a client may try to authenticate on one connection.
const maxAttempts = 3

// session is one user's connection and the worker that serves it. It begins with accept4,
// and ends when nothing of it is left in the worker.
type session struct {
	pipeline *Pipeline
	task     *Task
	slot     *slot
	worker   sandbox.Worker
	peer     netip.Addr
	region   string
	mode     wire.Mode
	nonce    [wire.NonceSize]byte
	started  time.Time
	endpoint *endpoint
	// reply sends a record to the worker: by the endpoint, or by the task's supervisor.
	reply   func(record []byte, files ...*os.File) error
	ended   chan struct{} // closed when the worker may begin another session
	allowed allowedClasses
	claimed string // whose session it counts as; guarded by the pipeline's sessions
	leaving bool   // it is being ended for the sake of other addresses; guarded likewise

	mu      sync.Mutex
	holds   *capabilitySet   // nil until the user has authenticated
	over    bool             // nothing of it is left
	learnt  map[uint32]bool  // what unforeseen has reported since
	refusal string           // the monitor's last reason, where a supervisor asked
	who     decision.Subject // the subject that the session acts for once holds is set
	tracked *tracked         // its running taint then, in a dynamic mode
	writing bool             // a message is served beside others
	unbound *time.Timer      // ends the session unless its user has authenticated by then
}

// bound is the capability set of the authenticated user, nil before.
func (s *session) bound() *capabilitySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds
}

// requestRule says when a message is allowed. A message without a rule ends the session.
type requestRule struct {
	kind         metrics.Kind // of interception
	needsBinding bool
	limit        int // how often in one session; 0: any number
	// beside says that it is served beside other messages, since it may wait for a change.
	beside bool
	serve  func(*session, uint64, wire.Message, *metrics.Interception) error
}

var sessionRequests = map[wire.Type]requestRule{
	wire.TypeAuthenticate: {kind: metrics.Authenticate, limit: maxAttempts, serve: (*session).authenticate},
	wire.TypeOpen:         {kind: metrics.Open, needsBinding: true, serve: (*session).open},
	wire.TypeWrite:        {kind: metrics.Write, needsBinding: true, beside: true, serve: (*session).write},
	wire.TypeChoices:      {kind: metrics.Choose, needsBinding: true, beside: true, serve: (*session).choices},
	wire.TypeChoose:       {kind: metrics.Choose, needsBinding: true, beside: true, serve: (*session).choose},
	wire.TypeReset:        {kind: metrics.Reset, limit: 1, serve: (*session).reset},
}

var errReset = errors.New("session over")

// newSession makes a session for a connection. It takes over the slot.
func newSession(p *Pipeline, task *Task, worker sandbox.Worker, peer netip.Addr, reserved *slot) *session {
	s := &session{
		pipeline: p, task: task, worker: worker, slot: reserved, peer: peer, ended: make(chan struct{}),
		region: p.services.regionOf(peer), mode: p.Mode(), started: time.Now(),
	}
	rand.Read(s.nonce[:]) // never fails, according to its documentation
	return s
}

// serve answers the worker's messages until the worker has ended.
func (s *session) serve() {
	defer s.end()
	defer s.startTimers()()
	counts := map[wire.Type]int{}
	buffer := make([]byte, largestRecord)
	for {
		size, err := s.endpoint.receive(buffer)
		if err == nil {
			err = s.handle(buffer[:size], counts)
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, errReset):
			return
		case err != nil:
			s.pipeline.refused(metrics.Protocol, s.subject(), "message", "", err.Error())
			s.worker.Kill()
			return
		}
	}
}

// handle checks a record against the table of requests and serves it.
func (s *session) handle(record []byte, counts map[wire.Type]int) error {
	sequence, message, err := wire.DecodeFromTask(record)
	if err != nil {
		return err
	}
	rule, listed := sessionRequests[message.Type()]
	counts[message.Type()]++
	switch {
	case !listed:
		return errors.New("the worker sent a message of a type that is not allowed in a session")
	case rule.needsBinding && s.bound() == nil:
		return errors.New("the worker sent a message that is not allowed before the user has authenticated")
	case rule.limit > 0 && counts[message.Type()] > rule.limit:
		return errors.New("the worker sent a message that came too often in one session")
	}
	serving := s.pipeline.counts.Begin(rule.kind)
	if rule.beside {
		return s.serveBeside(rule, sequence, message, serving)
	}
	defer serving.End()
	return rule.serve(s, sequence, message, serving)
}

// reset ends the session, and counts what its worker did by itself.
func (s *session) reset(_ uint64, message wire.Message, _ *metrics.Interception) error {
	opens := credibleOpens(message.(wire.Reset).Counters.FastOpens, time.Since(s.started))
	s.pipeline.counts.OpenedNatively(opens)
	return errReset
}

// subject returns the subject that the session acts for: its user, or an unbound worker.
func (s *session) subject() decision.Subject { return s.actor().Subject }

// actor returns for whom the session's accesses are decided.
func (s *session) actor() actor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds == nil {
		return actor{Subject: decision.Subject{Task: s.task.name, Instance: s.task.name + "(unbound)"}, mode: s.mode}
	}
	return actor{s.who, s.mode, s.tracked, s.holds, &s.allowed}
}

// hold gives the session its user's capability set.
func (s *session) hold(holds *capabilitySet, who decision.Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(holds)
	s.who, s.tracked = who, nil
	if s.mode.IsDynamic() {
		s.tracked = s.trackSession(holds) // with mu held: permitTuples finds it, or is found by it
	}
}

// take replaces the session's set. Called with mu held.
func (s *session) take(holds *capabilitySet) {
	if stale := &s.pipeline.stale; !s.over {
		stale.leave(s.holds)
		stale.enter(holds)
	}
	s.holds = holds
}

// letGo says that the session, which is over, holds its set no longer.
func (s *session) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.pipeline.stale.leave(s.holds)
	}
}

// withConnection adds to an instance's subject what only this connection has: an instance
// serves its user at many addresses, one without a region serves many regions, and one
// without a user serves many users.
func (s *session) withConnection(who decision.Subject, principal string) decision.Subject {
	session := *who.Session
	session.Principal, session.IP, session.Region = principal, s.peer, s.region
	who.Session = &session
	return who
}

// authenticate verifies the client's signature and binds the worker to the
// instance of its user and region. The answer carries the prepared capability set.
func (s *session) authenticate(sequence uint64, message wire.Message, login *metrics.Interception) error {
	request := message.(wire.Authenticate)
	begun := time.Now()
	holds, result, err := s.bind(request)
	event := audit.Event{
		Kind: audit.Binding, Task: s.task.name, Principal: request.Principal, Operation: "authenticate",
		Conduit: s.peer.String(), Allowed: err == nil,
	}
	if err != nil {
		event.Reason, result = err.Error(), metrics.Refused
	} else {
		event.Instance, event.Reason = holds.subject.Instance, result
	}
	event.LatencyMicroseconds = time.Since(begun).Microseconds()
	told := []audit.Told{login}
	if err != nil {
		told = append(told, s.pipeline.counts.Denied(s.task.name, "", metrics.Login))
	}
	if failure := s.pipeline.record(event, told...); failure != nil && err == nil {
		s.unbind()
		s.pipeline.counts.Denied(s.task.name, "", metrics.Unrecorded)
		holds, result, err = nil, metrics.Refused, fmt.Errorf("the session cannot be recorded: %w", failure)
	}
	s.pipeline.counts.Bound(result)
	bound := wire.Bound{}
	if err != nil {
		s.pipeline.counts.Refused(event.Operation)
		bound.Status, bound.Reason = int32(unix.EACCES), wire.Truncate(err.Error(), wire.ReasonMax)
	} else {
		bound.Instance = wire.Shorten(holds.subject.Instance)
	}
	return s.answerBound(sequence, bound, holds)
}

// unbind reverts a binding that the worker was not told of.
func (s *session) unbind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(nil)
	s.tracked = nil
	s.pipeline.sessions.disclaim(s)
}

// open decides on conduits outside the capability set (in the dynamic modes, on all conduits),
// and hands over descriptors of those that are allowed.
func (s *session) open(sequence uint64, message wire.Message, opening *metrics.Interception) error {
	request := message.(wire.Open)
	who := s.actor()
	answer := wire.Opened{Status: make([]int32, len(request.Conduits))}
	files := make([]*os.File, 0, len(request.Conduits))
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	for i, id := range request.Conduits {
		file, errno := s.openConduit(opening, who, id)
		s.pipeline.counts.Opened(metrics.ByMonitor, errno == 0, 1)
		answer.Status[i] = int32(errno) //nolint:gosec // a descriptor number of the kernel
		if errno == 0 {
			files = append(files, file)
		}
	}
	return s.send(sequence, answer, files...)
}

func (s *session) send(sequence uint64, message wire.Message, files ...*os.File) error {
	record, err := wire.Encode(sequence, message)
	if err != nil {
		return err
	}
	return s.reply(record, files...)
}

// exitGrace is how long a worker may take to leave its session by itself.
const exitGrace = time.Second

// awaitExit returns when nothing of the session is left in the worker. It kills a worker
// that does not leave by itself, because the worker holds its user's data and the ends of
// its slot.
func (s *session) awaitExit() {
	select {
	case <-s.worker.Gone():
	case <-time.After(exitGrace):
		s.worker.Kill()
		<-s.worker.Gone()
	}
}

// end ends a session. It waits until the worker has ended.
func (s *session) end() {
	p := s.pipeline
	s.endpoint.close()
	s.awaitExit()
	if s.bound() != nil {
		p.counts.SessionEnded(s.mode.String())
	}
	s.letGo()
	s.release() // only now: who sees that the slot is free may rely on the count
	p.sessions.dismiss(s)
	close(s.ended)
}

// release releases the session's resources, as far as it has acquired them.
func (s *session) release() {
	if s.endpoint != nil {
		s.endpoint.close()
	}
	s.slot.release()
}
