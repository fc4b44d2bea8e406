// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/decision"
	"shai.dev/monitor/policy"
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

// EndWithout ends, with immediate revocation, the sessions that could read a document, which has moved to
// another class, and may not any more. With them end those of the same instances. It returns their number.
// after is the state in force. The caller holds Binding.
func (p *Pipeline) EndWithout(move catalog.Move, after *catalog.State) (reset int) {
	if p.spec.Revocation != revokeAtOnce {
		return 0
	}
	conduit, exists := after.ConduitByID(int64(move.ID))
	lost := map[string]bool{}
	for _, s := range p.live() {
		who := s.actor()
		switch {
		case who.holds == nil || !who.couldRead(move.From):
		case exists && p.mayRead(who, move.To, conduit, after):
			who.allowed.add(move.To) // what it has read and holds open is of this class from now on
		default:
			lost[who.Instance] = true
		}
	}
	return p.endInstances(lost)
}

// couldRead reports whether a session may have a document of a class: it could open it without a question,
// or was allowed one of the class. In the dynamic modes there is always a question.
func (who actor) couldRead(class uint32) bool {
	return who.allowed.has(class) || !who.mode.IsDynamic() && who.holds.holdsClass(class)
}

// mayRead decides whether a session may read a document of a class, and in the dynamic modes use it.
func (p *Pipeline) mayRead(who actor, class uint32, conduit policy.Conduit, state *catalog.State) bool {
	read := decision.Flow{Who: who.Subject, What: policy.Read, Conduit: conduit}
	if who.tracked != nil {
		return who.tracked.mayRead(read, state, time.Now())
	}
	if now := p.setOf(who.Instance); now != nil && now.holdsClass(class) {
		return true
	}
	return decision.Decide(read, state, time.Now()).Allowed
}

// allowedClasses are those of the documents that the monitor has allowed a session one by one. It is safe
// for concurrent use.
type allowedClasses struct {
	mu      sync.Mutex
	classes map[uint32]bool
	many    bool // more than are remembered: they count as all
}

// maxAllowed limits what is remembered of one session.
const maxAllowed = 1 << 16

func (a *allowedClasses) add(class uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.classes[class]:
	case len(a.classes) == maxAllowed:
		a.many = true
	case a.classes == nil:
		a.classes = map[uint32]bool{class: true}
	default:
		a.classes[class] = true
	}
}

func (a *allowedClasses) has(class uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.many || a.classes[class]
}

// noteAllowed remembers that a session was allowed a document, before it gets it. Only EndWithout asks.
func (p *Pipeline) noteAllowed(who actor, conduit policy.Conduit) {
	if who.allowed == nil || p.spec.Revocation != revokeAtOnce || conduit.ID == 0 {
		return
	}
	if class := p.services.state().ClassOf(uint32(conduit.ID)); class != 0 { //nolint:gosec // within its range
		who.allowed.add(class)
	}
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
