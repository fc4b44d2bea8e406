// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
)

// Replacement are the capability sets of the instances that an analysis affects, ready to come
// into force. To make them takes time, and nobody waits for it.
type Replacement struct {
	state    *catalog.State
	affected []analysis.Affected
	sets     []*capabilitySet // of affected; nil if the instance is to have none
	made     uint64           // madeForSessions before
	err      error            // why not all are there
}

// Prepare prepares the sets that an analysis of a state has found, which need not be in force
// yet. Replace puts them in force. Calls do not overlap.
func (p *Pipeline) Prepare(state *catalog.State, affected []analysis.Affected) *Replacement {
	r := &Replacement{state: state, affected: affected, sets: make([]*capabilitySet, len(affected)),
		made: p.madeForSessions.Load()}
	if p.spec.Revocation == revokeAtOnce && slices.ContainsFunc(affected, hasLost) {
		p.Fence() // what supervisors have begun is known when its end is counted
	}
	for i, one := range affected {
		task := p.tasks[one.Instance.Task]
		if one.After == nil || len(task.spec.Parameters) == 0 {
			continue
		}
		if r.sets[i], r.err = p.prepareAnalyzed(state, task, one.After); r.err != nil {
			break
		}
	}
	return r
}

// Replace puts the sets in force. With immediate revocation, it ends the sessions of instances
// that may do less than before, and returns them: they may act until the caller has waited for
// their end, and for the next fence. If a set could not be prepared, it abandons all. The caller
// holds Binding, but need not while it waits.
func (p *Pipeline) Replace(r *Replacement) (Ending, error) {
	err := r.err
	if err == nil {
		err = p.installAgain(r)
	}
	if err != nil {
		for _, holds := range r.sets {
			if holds != nil {
				holds.close()
			}
		}
		p.stale.unneeded.Store(true) // some have a key-value user that nobody needs
		return p.Abandon(), err
	}
	var ending Ending
	if p.spec.Revocation == revokeAtOnce {
		if lost := lostIn(r.affected); len(lost) > 0 {
			ending = p.end(lost) // their clients connect again and get the new sets
		}
	}
	for i, one := range r.affected {
		switch {
		case r.sets[i] != nil:
			p.putSet(r.sets[i], false)
		case one.After == nil:
			p.dropSet(one.Instance.Name(), every)
		}
	}
	return ending, nil
}

// installAgain makes the key-value users of the sets again, if a session may have got a set of the
// same instance, and with it the same user, while they were prepared.
func (p *Pipeline) installAgain(r *Replacement) error {
	if p.madeForSessions.Load() == r.made {
		return nil
	}
	for _, holds := range r.sets {
		if holds == nil {
			continue
		}
		if err := p.installUser(r.state, holds); err != nil {
			return err
		}
	}
	return nil
}

// lostIn returns the instances that may do less than before.
func lostIn(affected []analysis.Affected) map[string]bool {
	lost := map[string]bool{}
	for _, one := range affected {
		if hasLost(one) {
			lost[one.Instance.Name()] = true
		}
	}
	return lost
}
