// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"maps"
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/supervision"
)

// The capability sets of a pipeline change in this file only, so that its supervisors learn
// of every change.

// setOf returns the set in force of an instance, nil if there is none.
func (p *Pipeline) setOf(instance string) *capabilitySet {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sets[instance]
}

// PutSets puts capability sets in force, and no others. Descriptors of the old sets are closed
// when nothing refers to them any more. With immediate revocation it ends the sessions of
// instances that may do less than before: from now on, nobody follows what they hold. The
// caller holds Binding.
func (p *Pipeline) PutSets(sets Sets) {
	if sets == nil {
		return // in mode baseline
	}
	lost := p.replaceSets(sets)
	killAll(slices.DeleteFunc(p.sessions.live(), func(s *session) bool { return !lost[s.subject().Instance] }))
}

// replaceSets returns the instances whose sessions supervisors have to end.
func (p *Pipeline) replaceSets(sets Sets) (lost map[string]bool) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.mu.Lock()
	before := p.sets
	p.sets = sets
	p.unforeseen = unforeseenOf(sets)
	p.stale.inForce.Store(int64(len(sets)))
	p.mu.Unlock()
	for name, holds := range before {
		if sets[name] != holds {
			p.stale.retire(holds, sets[name])
		}
	}
	lost = map[string]bool{}
	for name, holds := range before {
		switch {
		case p.spec.Revocation == revokeAtOnce && holds.analyzed && holds.exceeds(sets[name]):
			lost[name] = true
			p.tellForgotten(holds, lostReason)
		case sets[name] == nil:
			p.tellForgotten(holds, "")
		}
	}
	for name, holds := range sets {
		if before[name] != holds {
			p.tellChanged(holds)
		}
	}
	return lost
}

// lostReason is said of sessions whose instance has lost an access.
const lostReason = "its user may do less than before; connect again"

// putSet puts one set in force. If another one of the instance is in force already and is
// to stay, it returns that one.
func (p *Pipeline) putSet(holds *capabilitySet, staying bool) *capabilitySet {
	name := holds.subject.Instance
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.mu.Lock()
	other := p.sets[name]
	if other != nil && staying {
		p.mu.Unlock()
		return other
	}
	p.sets[name] = holds
	if !holds.analyzed {
		p.unforeseen[name] = true
	}
	p.stale.inForce.Store(int64(len(p.sets)))
	p.mu.Unlock()
	if other != nil {
		p.stale.retire(other, holds)
	}
	p.tellChanged(holds)
	return holds
}

// Publish gives the set in force of an instance to its live sessions in mode shai, too, if it is
// of an analysis and has the class of the access. They may lose what they had kept of an
// earlier set by lazy revocation. It reports whether it has done so. The caller holds Binding.
func (p *Pipeline) Publish(access analysis.Access) bool {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	holds := p.setOf(access.Instance.Name())
	if holds == nil || !holds.analyzed || access.Class != 0 && !holds.holdsClass(access.Class) {
		return false
	}
	for _, v := range p.supervised {
		if err := v.tellSet(holds, supervision.SetLive); err != nil {
			p.logUntold(holds, err)
		}
	}
	for _, s := range p.sessions.live() {
		s.adopt(holds)
	}
	return true
}

// unforeseenOf lists the instances whose set is of no analysis.
func unforeseenOf(sets Sets) map[string]bool {
	names := map[string]bool{}
	for name, holds := range sets {
		if !holds.analyzed {
			names[name] = true
		}
	}
	return names
}

// dropSet drops the set of an instance, if a condition holds for it.
func (p *Pipeline) dropSet(name string, dropped func(*capabilitySet) bool) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.mu.Lock()
	holds := p.sets[name]
	if holds == nil || !dropped(holds) {
		p.mu.Unlock()
		return
	}
	delete(p.sets, name)
	p.stale.inForce.Store(int64(len(p.sets)))
	p.mu.Unlock()
	p.stale.retire(holds, nil)
	p.tellForgotten(holds, "")
}

// dropSets drops the sets that a condition holds for. If a reason is given, it ends their
// live sessions, too.
func (p *Pipeline) dropSets(dropped func(*capabilitySet) bool, reason string) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.mu.Lock()
	var gone []*capabilitySet
	maps.DeleteFunc(p.sets, func(_ string, holds *capabilitySet) bool {
		drop := dropped(holds)
		if drop {
			gone = append(gone, holds)
		}
		return drop
	})
	p.stale.inForce.Store(int64(len(p.sets)))
	p.mu.Unlock()
	for _, holds := range gone {
		p.stale.retire(holds, nil)
		p.tellForgotten(holds, reason)
	}
}

// DropSets drops all sets. The sessions of the pipeline have ended.
func (p *Pipeline) DropSets() { p.dropSets(every, "") }

func every(*capabilitySet) bool { return true }

// tellChanged tells the supervisors of a set that has come into force. Called with feeding
// held.
func (p *Pipeline) tellChanged(holds *capabilitySet) {
	for _, v := range p.supervised {
		if err := v.tellSet(holds, 0); err != nil {
			p.logUntold(holds, err)
		}
	}
}

func (p *Pipeline) logUntold(holds *capabilitySet, err error) {
	p.services.Logger.Error("a supervisor is not told of an instance; logins of its user are refused", "pipeline", p.name,
		"instance", holds.subject.Instance, "error", err)
}

// tellForgotten tells the supervisors of a set that is no longer in force. Called with
// feeding held.
func (p *Pipeline) tellForgotten(holds *capabilitySet, reason string) {
	for _, v := range p.supervised {
		v.tellForgotten(holds, reason)
	}
}

// tellRevoked makes the supervisors forget the set of an instance and end its sessions.
func (p *Pipeline) tellRevoked(instance string) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	for _, v := range p.supervised {
		if holds := v.lastTold(instance); holds != nil {
			v.tellForgotten(holds, lostReason)
		}
	}
}

// Follow drops the sets that a change of the catalog makes doubtful, and tells the supervisors
// of the keys, regions and decisions that it has changed. Replace follows with the analysis.
// The caller holds Binding.
func (p *Pipeline) Follow(change *catalog.Change) {
	p.dropUnforeseen()
	p.feeding.Lock()
	defer p.feeding.Unlock()
	for _, v := range p.supervised {
		err := v.follow(change)
		if err != nil {
			p.services.Logger.Error("a supervisor cannot follow a change; its task is ended", "pipeline", p.name, "task",
				v.task.name, "error", err)
			go func() { _ = v.kill() }() // its fence waits for it
		}
	}
}

func (v *supervised) follow(change *catalog.Change) error {
	for _, principal := range change.Principals() {
		if err := v.tellKey(change.After, principal); err != nil {
			return err
		}
	}
	if err := v.tellRegions(); err != nil {
		return err
	}
	if !change.Bundle {
		return nil
	}
	return v.tellSets() // whether a policy is enforced may have changed
}
