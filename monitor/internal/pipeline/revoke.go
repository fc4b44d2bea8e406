// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"slices"

	"shai.dev/monitor/internal/analysis"
)

// hasLost reports whether an instance may do less than before.
func hasLost(one analysis.Affected) bool {
	if len(one.Lost) > 0 || one.After == nil {
		return true
	}
	if one.Before == nil {
		return false
	}
	for _, class := range one.Before.Writes {
		if !slices.Contains(one.After.Writes, class) {
			return true
		}
	}
	for _, access := range one.Before.Others {
		if !slices.Contains(one.After.Others, access) {
			return true
		}
	}
	return false
}

// revokeAtOnce is the value of spec.revocation with which live sessions lose an access as
// soon as their user does.
const revokeAtOnce = "immediate"

// Abandon drops the capability sets of a pipeline for which they cannot be updated. It is
// then unknown what live sessions have lost; if revocation is immediate, all are ended.
func (p *Pipeline) Abandon() Ending {
	if p.spec.Revocation != revokeAtOnce {
		p.dropSets(every, "")
		return nil
	}
	live := p.live()
	p.dropSets(every, "it is unknown what its user may still do; connect again")
	return kill(live)
}

// dropUnforeseen drops the sets of instances that were not analysed: no analysis updates
// them, so they are made anew when they are needed.
func (p *Pipeline) dropUnforeseen() {
	p.mu.Lock()
	names := p.unforeseen
	p.unforeseen = map[string]bool{}
	p.mu.Unlock()
	for name := range names {
		p.dropSet(name, func(holds *capabilitySet) bool { return !holds.analyzed })
	}
}

// endInstances ends the live sessions of some instances, and returns when they have ended, but for
// those that supervisors serve.
func (p *Pipeline) endInstances(lost map[string]bool) int {
	if len(lost) == 0 {
		return 0
	}
	p.Fence()
	ending := p.end(lost)
	ending.Wait()
	return len(ending)
}

// end ends the live sessions of some instances, those too that supervisors have not reported
// yet. It returns those that are known.
func (p *Pipeline) end(lost map[string]bool) Ending {
	live := slices.DeleteFunc(p.sessions.live(), func(s *session) bool { return !lost[s.subject().Instance] })
	for instance := range lost {
		p.tellRevoked(instance)
	}
	return kill(live)
}

// HasStale reports whether a live session keeps, by lazy revocation, one of some classes that its
// instance has lost.
func (p *Pipeline) HasStale(classes []uint32) bool { return len(p.staleHolders(classes)) > 0 }

// EndStale ends the sessions that HasStale is about, when documents come into these classes: what a
// session keeps is what it could read when it lost the access, and not what is new. It returns
// their number. The caller holds Binding.
func (p *Pipeline) EndStale(classes []uint32) (reset int) {
	return p.endInstances(p.staleHolders(classes))
}

// staleHolders returns the instances of such sessions.
func (p *Pipeline) staleHolders(classes []uint32) map[string]bool {
	holders := map[string]bool{}
	p.stale.former.Range(func(key, _ any) bool {
		former := key.(*capabilitySet)
		now := p.setOf(former.subject.Instance)
		if former.holding.sessions.Load() > 0 && slices.ContainsFunc(classes, func(class uint32) bool {
			return former.holdsClass(class) && (now == nil || !now.holdsClass(class))
		}) {
			holders[former.subject.Instance] = true
		}
		return true
	})
	return holders
}

// EndWithout ends, with immediate revocation, the sessions that have one class and not another, into
// which a document has moved. It returns their number. The caller holds Binding.
func (p *Pipeline) EndWithout(from, to uint32) (reset int) {
	if p.spec.Revocation != revokeAtOnce {
		return 0
	}
	lost := map[string]bool{}
	for _, s := range p.live() {
		holds := s.bound()
		if holds == nil || !holds.holdsClass(from) {
			continue
		}
		if now := p.setOf(holds.subject.Instance); now == nil || !now.holdsClass(to) {
			lost[holds.subject.Instance] = true
		}
	}
	return p.endInstances(lost)
}

// EndMoved ends sessions whose address is in another region than when they began: those
// without a user, so that nobody logs in to the former region, and with immediate revocation
// also those with one, whose number it returns. Called after Follow, which tells supervisors
// the regions. The caller holds Binding.
func (p *Pipeline) EndMoved() (reset int) {
	var moved []*session
	for _, s := range p.live() {
		switch {
		case s.region == p.services.regionOf(s.peer):
		case s.bound() == nil:
			moved = append(moved, s)
		case p.spec.Revocation == revokeAtOnce:
			moved = append(moved, s)
			reset++
		}
	}
	killAll(moved)
	return reset
}

// killAll kills sessions and returns when nothing of them is left. For those that supervisors
// serve, this is so after the next fence.
func killAll(sessions []*session) { kill(sessions).Wait() }

func kill(sessions []*session) Ending {
	for _, s := range sessions {
		s.worker.Kill()
	}
	return sessions
}

// Ending are sessions that have been told to end.
type Ending []*session

// Wait returns when nothing of them is left. For those that supervisors serve, this is so after the
// next fence.
func (e Ending) Wait() {
	for _, s := range e {
		if _, fenced := s.worker.(supervisedWorker); !fenced {
			<-s.worker.Gone()
		}
	}
}
