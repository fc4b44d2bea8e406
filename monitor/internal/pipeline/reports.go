// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/supervision"
	"shai.dev/monitor/internal/wire"
)

// promises is how many bindings a supervisor may make before the monitor has recorded
// them: the audit log has promised to record so many. Each takes less than a kilobyte of
// its reserve.
const promises = 2 * workersAhead

// payRetry is how soon the monitor asks the audit log again when it promises nothing.
const payRetry = time.Second

// pay gives the supervisor as many bindings as it is owed, if the audit log promises to
// record them. A supervisor without them binds no session.
func (v *supervised) pay() {
	if paid := v.payable(); paid > 0 {
		v.send(supervision.Credits{Count: paid})
	}
}

// payable takes what can be paid now from what is owed, or sees to it that pay is called
// again.
func (v *supervised) payable() (paid uint32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.owed == 0:
	case v.pipeline.services.Audit.CanPromise():
		paid, v.owed = v.owed, 0
	case !v.retrying:
		v.retrying = true
		time.AfterFunc(payRetry, v.payAgain)
	}
	return paid
}

func (v *supervised) payAgain() {
	v.mu.Lock()
	v.retrying = false
	v.mu.Unlock()
	select {
	case <-v.finished:
	default:
		v.pay()
	}
}

// report records and counts what a supervisor did. It does so first: who sees the effect on a
// session finds it recorded and counted.
func (v *supervised) report(event supervision.Event) {
	s := v.session(event.Session)
	if s == nil && (event.Kind == supervision.EventBound || event.Kind == supervision.EventEnded) {
		v.pipeline.services.Logger.Error("the supervisor reported a session that did not begin", "pipeline",
			v.pipeline.name, "task", v.task.name, "session", event.Session)
		return
	}
	took := time.Duration(event.LatencyUS) * time.Microsecond
	switch event.Kind {
	case supervision.EventAccepted:
		v.pipeline.counts.Intercepted(metrics.Accept, took)
		v.began(event)
	case supervision.EventBound:
		v.bound(s, event, v.pipeline.counts.Intercepted(metrics.Authenticate, took))
	case supervision.EventRefused:
		v.refusedLogin(s, event, v.pipeline.counts.Intercepted(metrics.Authenticate, took))
	case supervision.EventViolation:
		v.pipeline.refused(metrics.Protocol, v.subjectOf(s), "message", "", event.Reason)
	case supervision.EventLimit:
		v.pipeline.refused(metrics.Limit, v.subjectOf(s), "accept4", addressOf(event.Peer).String(), event.Reason)
	case supervision.EventEnded:
		v.mu.Lock()
		delete(v.sessions, event.Session)
		v.mu.Unlock()
		v.pipeline.counts.OpenedNatively(event.Counters[0])
		v.ended(s, event)
	case supervision.EventWorker:
		v.pipeline.services.Logger.Warn("a worker has ended before its session; the next one starts later", "pipeline",
			v.pipeline.name, "task", v.task.name, "process", event.Worker, "reason", event.Reason)
	}
}

// count notes how many workers there are, and counts what the supervisor has opened since it
// told the last time.
func (v *supervised) count(now supervision.Counts) {
	before := v.counts.Swap(&now)
	if before == nil {
		before = &supervision.Counts{}
	}
	v.pipeline.counts.Opened(metrics.BySupervisor, true, now.Opens-min(before.Opens, now.Opens))
	if now.Idle > 0 {
		go v.task.idle(v.started) // the start that made the workers may hold the task
	}
}

// subjectOf returns whom a session acts for; s may be nil.
func (v *supervised) subjectOf(s *session) decision.Subject {
	if s == nil {
		return decision.Subject{Task: v.task.name, Instance: v.task.name + "(unbound)"}
	}
	return s.subject()
}

func (v *supervised) began(event supervision.Event) {
	p := v.pipeline
	peer := addressOf(event.Peer)
	s := &session{
		// The region as the supervisor knew it: the facts may have changed since.
		pipeline: p, task: v.task, slot: &slot{number: int(event.Slot)}, peer: peer, region: event.Reason,
		mode: event.Mode, started: time.Unix(0, event.When),
		worker: supervisedWorker{of: v, session: event.Session, pid: int(event.Worker), gone: make(chan struct{})},
	}
	s.reply = func(record []byte, files ...*os.File) error {
		return v.to.Send(supervision.Relay{Session: event.Session, Record: record}, files...)
	}
	v.mu.Lock()
	v.sessions[event.Session] = s
	v.mu.Unlock()
	p.sessions.admit(s)
}

// bound notes whose session it is. The supervisor has used up a promise to record that.
func (v *supervised) bound(s *session, event supervision.Event, login *metrics.Interception) {
	p := v.pipeline
	instance, holds := v.boundTo(event.Principal, s.region)
	v.mu.Lock()
	v.owed++
	v.mu.Unlock()
	if holds == nil || event.Instance != wire.Shorten(instance) {
		p.services.Logger.Error("a session is ended: it was bound to another instance than its user and address have, or "+
			"while its set changed",
			"bound", event.Instance, "instance", instance)
		s.worker.Kill()
		return
	}
	p.counts.Bound(event.Reason)
	err := p.services.Audit.AppendPromised(audit.Event{
		Kind: audit.Binding, Pipeline: p.name, Task: v.task.name, Principal: event.Principal, Operation: "authenticate",
		Instance: instance, Conduit: s.peer.String(), Allowed: true, Reason: event.Reason,
		LatencyMicroseconds: int64(event.LatencyUS),
	}, login)
	if err != nil { // the monitor is closing
		p.services.Metrics.AuditFailed()
		s.worker.Kill()
	}
	s.hold(holds, s.withConnection(holds.subject, event.Principal))
	if !holds.analyzed {
		s.learnSet()
	}
}

func (v *supervised) refusedLogin(s *session, event supervision.Event, login *metrics.Interception) {
	p := v.pipeline
	if event.Principal == "" { // nobody tried
		p.refused(metrics.Login, v.subjectOf(nil), "authenticate", addressOf(event.Peer).String(), event.Reason)
		return
	}
	reason := event.Reason
	if s != nil {
		s.mu.Lock()
		if wire.Truncate(s.refusal, wire.ReasonMax) == reason {
			reason = s.refusal
		}
		s.mu.Unlock()
	}
	p.counts.Bound(metrics.Refused)
	p.counts.Refused("authenticate")
	// A refusal stays one, recorded or not; a failure is counted.
	_ = p.record(audit.Event{
		Kind: audit.Binding, Task: v.task.name, Principal: event.Principal, Operation: "authenticate",
		Conduit: addressOf(event.Peer).String(), Reason: reason, LatencyMicroseconds: int64(event.LatencyUS),
	}, login, p.counts.Denied(v.task.name, "", metrics.Login))
}

// ended ends what the monitor keeps of a session. Only if the supervisor itself has ended
// it, nothing else has said why.
func (v *supervised) ended(s *session, event supervision.Event) {
	p := v.pipeline
	switch {
	case event.Flags&supervision.EventDecided != 0:
		p.refused(metrics.Limit, s.subject(), "session", s.peer.String(), event.Reason)
	case event.Reason == "":
		p.counts.Waited(metrics.Reset)
	default:
		p.services.Logger.Debug("a session has ended without a reset", "pipeline", p.name,
			"instance", s.subject().Instance, "reason", event.Reason)
	}
	if s.bound() != nil {
		p.counts.SessionEnded(s.mode.String())
	}
	s.letGo()
	close(s.worker.(supervisedWorker).gone)
	p.sessions.dismiss(s)
}

// Unsealed implements [sandbox.Sessions]. The workers of a start are copies of one program: the
// first reason is reported, and the program cannot fill the log with others.
func (v *supervised) Unsealed(reason error) {
	v.unsealed.Do(func() {
		v.pipeline.services.Logger.Info("each worker serves one session", "pipeline", v.pipeline.name,
			"task", v.task.name, "reason", reason)
		go v.task.unsealed(v.started, reason) // the start that made the worker may hold the task
	})
}

// Discarded implements [sandbox.Sessions].
func (v *supervised) Discarded(worker int, difference error) {
	p := v.pipeline
	p.counts.Discarded(v.task.name)
	p.services.Logger.Error("a worker was not rolled back as it should; it is killed, and has no other session",
		"pipeline", p.name, "task", v.task.name, "process", worker, "difference", difference)
	p.refused(metrics.Integrity, v.subjectOf(nil), "roll back", "", fmt.Sprintf("process %d: %v", worker, difference))
}

// addressOf returns an address as the rest of the monitor writes it.
func addressOf(address [supervision.AddressSize]byte) netip.Addr {
	return netip.AddrFrom16(address).Unmap()
}
