// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"fmt"
	"strings"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// subject is what an access is decided for: a task instance with its taint.
type subject struct {
	task     string
	instance string // "indexer", "worker(alice, de)"
	taint    policy.Label
	session  *policy.Session // the user, or "task/<name>" for a task without one
}

// flow is an access to decide on.
type flow struct {
	who     subject
	what    policy.Operation
	conduit policy.Conduit
	explain bool // with a derivation, which costs several times the decision
}

// decision is the answer. If only policies that are not enforced forbid the flow, it is
// allowed, and the decision holds their reason.
type decision struct {
	policy.Decision
	wouldDeny string    // their reason; "" if nothing would be denied
	relaxed   []relaxed // the policies that would deny it
}

// byEveryPolicy reports whether no policy forbids the flow, not even one in mode Audit or
// Warn.
func (d decision) byEveryPolicy() bool { return d.Allowed && d.wouldDeny == "" }

// relaxed is a policy in mode Audit or Warn.
type relaxed struct {
	policy string
	mode   catalog.Mode
}

// decide evaluates the policies on a state. It does nothing else: no I/O, no cache.
func decide(f flow, state *catalog.State, now time.Time) decision {
	environment := policy.Environment{Session: f.who.session, Now: now, Explain: f.explain}
	all := policy.Decide(f.what, f.who.taint, f.conduit, state, environment)
	waive := state.Waive()
	if all.Allowed || waive == nil {
		return decision{Decision: all}
	}
	environment.Waive = waive
	enforced := policy.Decide(f.what, f.who.taint, f.conduit, state, environment)
	if !enforced.Allowed {
		return decision{Decision: enforced}
	}
	out := decision{Decision: enforced, wouldDeny: all.Reason}
	for _, p := range all.Unmet {
		if waive(p) {
			out.relaxed = append(out.relaxed, relaxed{p.Template().File(), state.ModeOf(p)})
		}
	}
	return out
}

// would returns the audit log's text about an access that is allowed because the policies
// that forbid it are in mode Audit or Warn.
func (d decision) would() string {
	var names []string
	for _, r := range d.relaxed {
		names = append(names, fmt.Sprintf("policy %s in mode %s", r.policy, r.mode))
	}
	return "would be denied: " + d.wouldDeny + " (" + strings.Join(names, ", ") + ")"
}

// decide makes one slow-path decision, records it and counts it. In mode audit, a refusal
// is recorded and then allowed. In mode dynamic, where every access comes here, allowed
// accesses are counted but not recorded one by one. An access that cannot be recorded is
// refused.
func (p *pipeline) decide(who subject, what policy.Operation, conduit policy.Conduit, mode wire.Mode) policy.Decision {
	f := flow{who: who, what: what, conduit: conduit}
	begun := time.Now()
	found := decide(f, p.services.state(), begun)
	took := time.Since(begun)
	if !found.Allowed {
		p.services.metrics.refusals.WithLabelValues(p.name, what.String()).Inc()
		if mode == wire.ModeAudit {
			found.Allowed, found.wouldDeny = true, found.Reason
		}
	}
	if found.wouldDeny == "" && found.Allowed && mode == wire.ModeDynamic {
		p.services.metrics.decided(p.name, true)
		return found.Decision
	}
	if err := p.recordDecision(f, found, took); err != nil && found.Allowed {
		found.Decision = policy.Decision{Reason: "the decision cannot be recorded: " + err.Error()}
	}
	p.services.metrics.decided(p.name, found.Allowed)
	return found.Decision
}

// decideAhead decides on descriptors that a task or session gets once, before it uses
// them. An allowed decision is recorded only if an unenforced policy would deny it. The
// caller reports a refusal.
func (p *pipeline) decideAhead(who subject, what policy.Operation, conduit policy.Conduit) policy.Decision {
	f := flow{who: who, what: what, conduit: conduit}
	begun := time.Now()
	found := decide(f, p.services.state(), begun)
	if found.wouldDeny == "" {
		return found.Decision
	}
	if err := p.recordDecision(f, found, time.Since(begun)); err != nil {
		return policy.Decision{Reason: "the decision cannot be recorded: " + err.Error()}
	}
	return found.Decision
}

// recordDecision writes the audit record of a decision, and counts the denials of each
// policy in mode Audit or Warn.
func (p *pipeline) recordDecision(f flow, found decision, took time.Duration) error {
	event := audit.Event{
		Kind: audit.Decision, Task: f.who.task, Instance: f.who.instance, Operation: f.what.String(),
		Conduit: f.conduit.Name, Allowed: found.Allowed, Reason: found.Reason,
		LatencyMicroseconds: took.Microseconds(),
	}
	if f.who.session != nil {
		event.Principal = f.who.session.Principal
	}
	if f.conduit.Policy != nil {
		event.Policy = f.conduit.Policy.String()
	}
	for _, condition := range found.Conditions {
		event.Facts = append(event.Facts, condition.String())
	}
	if !found.Allowed || found.wouldDeny != "" {
		event.Kind = audit.Denial
	}
	switch {
	case len(found.relaxed) > 0:
		event.Reason = found.would()
	case found.wouldDeny != "":
		event.Reason = "would be denied: " + found.wouldDeny
	}
	for _, r := range found.relaxed {
		p.services.metrics.wouldDeny.WithLabelValues(p.name, r.policy, string(r.mode)).Inc()
	}
	return p.record(event)
}

// refused records an access that was refused without a policy's decision.
func (p *pipeline) refused(who subject, what, conduit, reason string) {
	p.services.metrics.refusals.WithLabelValues(p.name, what).Inc()
	p.record(audit.Event{
		Kind: audit.Denial, Task: who.task, Instance: who.instance, Operation: what,
		Conduit: conduit, Reason: reason,
	})
}
