// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// decide makes one slow-path decision, records it and counts it. In mode audit, a refusal
// is recorded and then allowed. In the dynamic modes, where every access comes here, allowed
// accesses are counted but not recorded one by one. An access that cannot be recorded is
// refused.
func (p *Pipeline) decide(
	asked *metrics.Interception, who actor, what policy.Operation, conduit policy.Conduit,
) policy.Decision {
	return p.decideFlow(asked, who, decision.Flow{Who: who.Subject, What: what, Conduit: conduit})
}

func (p *Pipeline) decideFlow(asked *metrics.Interception, who actor, f decision.Flow) policy.Decision {
	what, conduit := f.What, f.Conduit
	begun := time.Now()
	found := p.decideNow(f, who, begun)
	took := time.Since(begun)
	told := []audit.Told{asked}
	forbidden := !found.Allowed
	name, why := causeOf(found, conduit)
	switch {
	case forbidden && who.mode == wire.ModeAudit && !errors.Is(found.Err, errFormer):
		found.Allowed, found.WouldDeny = true, found.Reason
	case forbidden:
		told = append(told, p.counts.Denied(who.Task, name, why))
		p.noteDenial(who.Task, what.String(), p.manifestName(conduit), name)
	}
	silent := found.WouldDeny == "" && found.Allowed && who.mode.IsDynamic()
	if !silent {
		err := p.recordDecision(f, found, took, told...)
		switch {
		case err != nil && found.Allowed:
			p.counts.Denied(who.Task, "", metrics.Unrecorded)
			p.noteDenial(who.Task, what.String(), p.manifestName(conduit), "")
			found.Decision = unrecorded(err)
		case forbidden && found.Allowed:
			p.counts.WouldDeny(name, metrics.InAudit, why)
		}
	}
	if forbidden || !found.Allowed {
		p.counts.Refused(what.String())
	}
	p.counts.Decided(p.manifestName(conduit), what.String(), found.Allowed)
	if found.Allowed && what == policy.Read {
		p.noteAllowed(who, conduit)
	}
	return found.Decision
}

// decideNow decides on an access of an actor, which has none if it is a session whose time is over.
func (p *Pipeline) decideNow(f decision.Flow, who actor, now time.Time) decision.Decision {
	state := p.services.state()
	if err := p.outdated(who.holds, state, now); err != nil {
		return decision.Decision{Decision: policy.Decision{Reason: err.Error(), Err: err}}
	}
	return who.decide(f, state, now)
}

// errUnrecorded is why an access that would be allowed is refused when it cannot be recorded.
var errUnrecorded = errors.New("the decision cannot be recorded")

// unrecorded returns the refusal of an access that cannot be recorded.
func unrecorded(err error) policy.Decision {
	err = fmt.Errorf("%w: %w", errUnrecorded, err)
	return policy.Decision{Reason: err.Error(), Err: err}
}

// causeOf returns the policy that has denied an access, "" if none has, and why.
func causeOf(found decision.Decision, conduit policy.Conduit) (name string, why metrics.Reason) {
	switch {
	case errors.Is(found.Err, errUnrecorded):
		return "", metrics.Unrecorded
	case errors.Is(found.Err, errFormer):
		return "", metrics.Limit
	case conduit.Policy == nil && conduit.Kind != policy.ConnectionConduit:
		return "", metrics.NoPolicy
	case len(found.Unmet) > 0:
		return unmetBy(found.Unmet[0], found, conduit)
	}
	return "", metrics.Limit // more than is tracked, or than a decision may take
}

// unmetBy returns the name of a policy that a decision found an unmet demand of, and whose it is.
func unmetBy(
	unmet *policy.Policy, found decision.Decision, conduit policy.Conduit,
) (name string, why metrics.Reason) {
	if !found.Onward && conduit.Policy != nil && unmet.ID() == conduit.Policy.ID() {
		return unmet.Template().File(), metrics.ByPolicy
	}
	return unmet.Template().File(), metrics.ByTaint
}

// decideAhead decides on descriptors that a task or session gets once, before it uses
// them. An allowed decision is recorded only if an unenforced policy would deny it. The
// caller reports a refusal.
func (p *Pipeline) decideAhead(who decision.Subject, what policy.Operation, conduit policy.Conduit) decision.Decision {
	f := decision.Flow{Who: who, What: what, Conduit: conduit}
	begun := time.Now()
	found := decision.Decide(f, p.services.state(), begun)
	if found.WouldDeny == "" {
		return found
	}
	if err := p.recordDecision(f, found, time.Since(begun)); err != nil {
		return decision.Decision{Decision: unrecorded(err)}
	}
	return found
}

// recordDecision writes the audit record of a decision. Then it counts the denials of each
// policy in mode Audit or Warn: without a record the access is refused.
func (p *Pipeline) recordDecision(
	f decision.Flow, found decision.Decision, took time.Duration, told ...audit.Told,
) error {
	event := audit.Event{
		Kind: audit.Decision, Task: f.Who.Task, Instance: f.Who.Instance, Operation: f.What.String(),
		Conduit: f.Conduit.Name, Allowed: found.Allowed, Reason: found.Reason,
		LatencyMicroseconds: took.Microseconds(),
	}
	if f.Who.Session != nil {
		event.Principal = f.Who.Session.Principal
	}
	if f.Conduit.Policy != nil {
		event.Policy = f.Conduit.Policy.String()
	}
	for _, condition := range found.Conditions {
		event.Facts = append(event.Facts, condition.String())
	}
	if !found.Allowed || found.WouldDeny != "" {
		event.Kind = audit.Denial
	}
	switch {
	case len(found.Relaxed) > 0:
		event.Reason = found.Would()
	case found.WouldDeny != "":
		event.Reason = "would be denied: " + found.WouldDeny
	}
	if err := p.record(event, told...); err != nil {
		return err
	}
	for _, r := range found.Relaxed {
		name, why := unmetBy(r.Policy, found, f.Conduit)
		p.counts.WouldDeny(name, string(r.Mode), why)
	}
	return nil
}

// refused counts and records an access that was refused without a policy's decision. asked are
// the interceptions that it belongs to.
func (p *Pipeline) refused(
	why metrics.Reason, who decision.Subject, what, conduit, reason string, asked ...audit.Told,
) {
	p.refusedBy("", "", why, who, what, conduit, reason, asked...)
}

// refusedBy does the same for an access to the pipeline's conduits of a name that a policy has
// forbidden.
func (p *Pipeline) refusedBy(
	name, conduits string, why metrics.Reason, who decision.Subject, what, conduit, reason string, asked ...audit.Told,
) {
	p.counts.Refused(what)
	denied := p.counts.Denied(who.Task, name, why)
	p.noteDenial(who.Task, what, conduits, name)
	p.record(audit.Event{
		Kind: audit.Denial, Task: who.Task, Instance: who.Instance, Operation: what,
		Conduit: conduit, Reason: reason,
	}, append(asked, denied)...)
}
