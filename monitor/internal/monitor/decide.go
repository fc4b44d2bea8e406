// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// subject is for whom an access is decided: a task instance with its taint.
type subject struct {
	task     string
	instance string // "indexer", "worker(alice, de)"
	taint    policy.Label
	session  *policy.Session // the user, or "task/<name>" for a task without one
}

// operation is what a subject wants to do with a conduit.
type operation string

const (
	opRead  operation = "read"
	opWrite operation = "write"
	opLeave operation = "leave" // by an egress connection to the connected party
)

// decide is the one place where the monitor takes a decision about a flow. It asks
// the policy engine on the state as it is now, the same functions that the offline
// analysis asks, and does nothing else: no I/O, no cache.
func decide(who subject, what operation, conduit policy.Conduit, state policy.State, now time.Time) policy.Decision {
	environment := policy.Environment{Session: who.session, Now: now}
	switch what {
	case opRead:
		return policy.MayRead(who.taint, conduit.Label(), state, environment)
	case opWrite:
		return policy.MayWrite(who.taint, conduit, state, environment)
	case opLeave:
		return policy.MayLeave(who.taint, conduit, state, environment)
	}
	return policy.Decision{Reason: fmt.Sprintf("%q is not an operation", what)}
}

// decide takes one slow-path decision: it asks, records and counts. In mode audit
// a refusal is recorded and then allowed; in mode dynamic, where every access comes
// here, allowed accesses are counted and not recorded one by one. An access that
// cannot be recorded is refused.
func (p *pipeline) decide(who subject, what operation, conduit policy.Conduit, mode wire.Mode) policy.Decision {
	begun := time.Now()
	decision := decide(who, what, conduit, p.monitor.state(), begun)
	if decision.Allowed && mode == wire.ModeDynamic {
		return decision
	}
	event := audit.Event{
		Kind: audit.Decision, Task: who.task, Instance: who.instance, Operation: string(what),
		Conduit: conduit.Name, Allowed: decision.Allowed, Reason: decision.Reason,
		LatencyMicroseconds: time.Since(begun).Microseconds(),
	}
	if who.session != nil {
		event.Principal = who.session.Principal
	}
	if conduit.Policy != nil {
		event.Policy = conduit.Policy.String()
	}
	for _, condition := range decision.Conditions {
		event.Facts = append(event.Facts, condition.String())
	}
	if !decision.Allowed {
		event.Kind = audit.Denial
		p.monitor.metrics.refusals.WithLabelValues(p.name, string(what)).Inc()
		if mode == wire.ModeAudit {
			event.Allowed, decision.Allowed = true, true
			event.Reason = "would be denied: " + decision.Reason
		}
	}
	if err := p.record(event); err != nil && decision.Allowed {
		return policy.Decision{Reason: "the decision cannot be recorded: " + err.Error()}
	}
	return decision
}

// refused records an access that no policy was asked about.
func (p *pipeline) refused(who subject, what, conduit, reason string) {
	p.monitor.metrics.refusals.WithLabelValues(p.name, what).Inc()
	p.record(audit.Event{
		Kind: audit.Denial, Task: who.task, Instance: who.instance, Operation: what,
		Conduit: conduit, Reason: reason,
	})
}
