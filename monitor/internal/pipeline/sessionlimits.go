// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"time"

	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/supervision"
)

// SessionLimits keep single clients from locking all others out: a pipeline serves as many
// sessions at a time as it has workers. For each field, 0 means the default.
type SessionLimits struct {
	PerUser int // sessions of one user in a pipeline; default: half of the workers, rounded up
	PerPeer int // connections of one address that wait for a login longer than hurry; default: the same
	Waiting int // connections that wait for a worker, on Linux; default: DefaultWaiting
	// PerWorker is how many sessions a worker serves one after the other, on Linux; 1: each
	// session has a process of its own. Default: DefaultPerWorker.
	PerWorker int
	Login     time.Duration // from the connection to the login; default: DefaultLoginTime
	Lifetime  time.Duration // from the connection to the end; default: DefaultLifetime
}

// The defaults of [SessionLimits].
const (
	DefaultWaiting   = 1024
	DefaultPerWorker = 1024
	DefaultLoginTime = 10 * time.Second
	DefaultLifetime  = 12 * time.Hour
)

// MaxWaiting is the most that [SessionLimits] may let wait.
const MaxWaiting = supervision.WaitingMax

// hurry is how long connections may take to log in, however many there are from one address.
const hurry = time.Second

// orDefault returns l with the defaults for a pipeline with this number of workers.
func (l SessionLimits) orDefault(workers int) SessionLimits {
	if l.PerUser == 0 {
		l.PerUser = (workers + 1) / 2
	}
	if l.PerPeer == 0 {
		l.PerPeer = (workers + 1) / 2
	}
	if l.Waiting == 0 {
		l.Waiting = DefaultWaiting
	}
	if l.PerWorker == 0 {
		l.PerWorker = DefaultPerWorker
	}
	if l.Login == 0 {
		l.Login = DefaultLoginTime
	}
	if l.Lifetime == 0 {
		l.Lifetime = DefaultLifetime
	}
	return l
}

// sessionLimits returns the limits of the task's sessions.
func (t *Task) sessionLimits() SessionLimits {
	return t.pipeline.services.Options.Sessions.orDefault(len(t.entrance.slots.channels))
}

// startTimers begins to count the time that the session may be without a user, and its
// lifetime. stop ends both.
func (s *session) startTimers() (stop func()) {
	limits := s.task.sessionLimits()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unbound = time.AfterFunc(limits.Login, func() {
		if s.bound() == nil {
			s.expire("authenticate", fmt.Sprintf("nobody authenticated within %d ms", limits.Login.Milliseconds()))
		}
	})
	crowd := time.AfterFunc(hurry, func() {
		if s.pipeline.sessions.crowds(s, limits.PerPeer) {
			s.expire("authenticate", crowdReason(limits))
		}
	})
	lifetime := time.AfterFunc(limits.Lifetime, func() {
		s.expire("session", fmt.Sprintf("a session lasts at most %d s; connect again", int64(limits.Lifetime.Seconds())))
	})
	return func() {
		s.unbound.Stop()
		crowd.Stop()
		lifetime.Stop()
	}
}

func crowdReason(limits SessionLimits) string {
	return fmt.Sprintf("only %d connections from one address may be without a user for more than %v", limits.PerPeer, hurry)
}

// admitted reports whether a peer may have another connection. If not, it closes the
// connection.
func (p *Pipeline) admitted(task *Task, got accepted) bool {
	limits := task.sessionLimits()
	if !p.sessions.crowded(got.peer, limits.PerPeer) {
		return true
	}
	got.connection.Close()
	p.refused(metrics.Limit, decision.Subject{Task: task.name, Instance: task.name + "(unbound)"}, "accept4",
		got.peer.String(), crowdReason(limits))
	return false
}

// expire ends a session whatever its worker is doing: a client that only connects, or never
// leaves, must not keep a slot.
func (s *session) expire(what, reason string) {
	s.pipeline.refused(metrics.Limit, s.subject(), what, s.peer.String(), reason)
	s.worker.Kill()
}
