// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/policy"
)

// Nobody is asked about what a session does with tuples: the key-value store has a user for
// each instance, of which it knows the rights. When they change, they do so for live sessions,
// too, and before the set that they are of is in force. In a dynamic mode the running taint has
// to have them before the store does.

// permitTuples is called before the store gives a user its rights. Live sessions that act as
// the user are tracked with them from now on, and end if that cannot be.
func (p *Pipeline) permitTuples(state *catalog.State, user string, accesses []analysis.Other) {
	p.mu.Lock()
	before, known := p.permitted[user]
	p.permitted[user] = accesses
	p.mu.Unlock()
	if !known || slices.Equal(before, accesses) {
		return // no session acts as a new user; others have the rights already
	}
	read, written := p.tuplesOf(accesses, state)
	ended := false
	for _, s := range p.sessions.live() {
		who, holds := s.actor(), s.bound()
		if who.tracked == nil || holds == nil || holds.keyValue != user {
			continue
		}
		if err := who.tracked.gain(who.Subject, read, written, state, time.Now()); err != nil {
			p.refused(metrics.ByTaint, who.Subject, "session", s.peer.String(), err.Error())
			s.worker.Kill()
			ended = true
		}
	}
	if ended {
		p.Fence()
	}
}

// tuplesPermitted returns the accesses of a set's key-value user: those of the set, and those
// that were permitted since.
func (p *Pipeline) tuplesPermitted(holds *capabilitySet) []analysis.Other {
	if holds.keyValue == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(holds.others, p.permitted[holds.keyValue])
}

// tuplesOf returns the tuples that accesses read and write.
func (p *Pipeline) tuplesOf(accesses []analysis.Other, state *catalog.State) (read, written []policy.Conduit) {
	for _, access := range accesses {
		set := p.conduitOf(access.Set)
		if set == nil || set.Kind != manifest.KindTuple {
			continue
		}
		tuple, found := state.ConduitNamed(access.Conduit)
		if !found {
			tuple = policy.Conduit{Name: access.Conduit, Kind: policy.TupleConduit}
		}
		if access.Write {
			written = append(written, tuple)
		} else {
			read = append(read, tuple)
		}
	}
	return read, written
}

// conduitOf returns a conduit of the pipeline's manifest, nil if there is none.
func (p *Pipeline) conduitOf(name string) *manifest.Conduit {
	for i := range p.spec.Conduits {
		if p.spec.Conduits[i].Name == name {
			return &p.spec.Conduits[i]
		}
	}
	return nil
}

// gain adds what the subject can read and write from now on without being asked. It returns
// an error if that would let it write on what a conduit does not keep.
func (t *tracked) gain(
	who decision.Subject, read, written []policy.Conduit, state *catalog.State, now time.Time,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conduit := range written {
		found := t.running.Decide(decision.Flow{Who: who, What: policy.Write, Conduit: conduit}, state, now)
		if !found.Allowed {
			return fmt.Errorf("it has read what %s does not keep, and may write to that from now on: %s", conduit.Name,
				found.Reason)
		}
		t.running.Hold(conduit)
	}
	for _, conduit := range read {
		found := t.running.Read(decision.Flow{Who: who, What: policy.Read, Conduit: conduit}, state, now)
		if !found.Allowed {
			return fmt.Errorf("it may read %s from now on: %s", conduit.Name, found.Reason)
		}
	}
	return nil
}
