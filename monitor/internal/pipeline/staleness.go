// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"sync"
	"sync/atomic"
	"time"
)

// staleness knows which capability sets live sessions hold that are no longer in force: with
// lazy revocation, a session keeps what it had. It is safe for concurrent use, and is read
// without a lock.
type staleness struct {
	inForce  atomic.Int64 // number of sets in force
	outdated atomic.Int64 // since when they do not reflect a change that is being made; Unix time in ns, 0: they do
	former   sync.Map     // of *capabilitySet: replaced, and held by sessions
	// unneeded says that a key-value user may have lost the last set or session that needs it.
	unneeded atomic.Bool
}

// holding is a set's part in it.
type holding struct {
	sessions atomic.Int64 // that hold the set
	replaced atomic.Int64 // when another one, or none, came into force; Unix time in ns, 0: it is in force
}

// enter notes that a session holds a set, and leave that it does not any more. Sets may be nil.
func (s *staleness) enter(holds *capabilitySet) {
	if holds == nil {
		return
	}
	holds.holding.sessions.Add(1)
	if holds.holding.replaced.Load() != 0 {
		s.former.Store(holds, nil)
	}
}

func (s *staleness) leave(holds *capabilitySet) {
	if holds != nil && holds.holding.sessions.Add(-1) == 0 {
		s.former.Delete(holds)
		if holds.keyValue != "" && holds.holding.replaced.Load() != 0 {
			s.unneeded.Store(true)
		}
	}
}

// retire notes that a set is no longer in force, but another one, which may be nil.
func (s *staleness) retire(holds, instead *capabilitySet) {
	holds.holding.replaced.CompareAndSwap(0, time.Now().UnixNano())
	if holds.keyValue != "" && (instead == nil || instead.keyValue != holds.keyValue) {
		s.unneeded.Store(true)
	}
	if holds.holding.sessions.Load() > 0 {
		s.former.Store(holds, nil)
	}
}

// look returns the number of sets in force and of stale ones, and how long the oldest of these
// has been stale.
func (s *staleness) look(now time.Time) (current, stale int64, age time.Duration) {
	current = s.inForce.Load()
	if since := s.outdated.Load(); since != 0 {
		current, stale, age = 0, current, now.Sub(time.Unix(0, since))
	}
	s.former.Range(func(key, _ any) bool {
		holds := key.(*capabilitySet)
		if holds.holding.sessions.Load() == 0 { // its last session left while it was noted
			s.former.Delete(holds)
			return true
		}
		stale++
		age = max(age, now.Sub(time.Unix(0, holds.holding.replaced.Load())))
		return true
	})
	return current, stale, max(age, 0)
}

// Outdate says that the sets do not reflect a change that was made, until the function that it
// returns is called.
func (p *Pipeline) Outdate() (updated func()) {
	p.stale.outdated.Store(time.Now().UnixNano())
	return func() { p.stale.outdated.Store(0) }
}
