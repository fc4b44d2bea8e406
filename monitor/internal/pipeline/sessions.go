// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// sessions are those of one pipeline, by their worker's process. They are safe for
// concurrent use.
type sessions struct {
	counts openSessions // their number

	mu        sync.Mutex
	byProcess map[int]*session
}

// openSessions counts sessions that are open, as [metrics.Pipeline] does.
type openSessions interface {
	SessionBegan()
	SessionOver()
}

func newSessions(counts openSessions) *sessions {
	return &sessions{counts: counts, byProcess: map[int]*session{}}
}

// of returns the session of a process that waits for an answer, or nil. The number of a
// worker that has ended may belong to another process.
func (t *sessions) of(pid int) *session {
	if s := t.latest(pid); s != nil && !s.worker.Ended() {
		return s
	}
	return nil
}

// latest returns the latest session of a process with this number that is not over.
func (t *sessions) latest(pid int) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byProcess[pid]
}

// live lists the sessions by slot.
func (t *sessions) live() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Collect(maps.Values(t.byProcess))
	slices.SortFunc(list, func(a, b *session) int { return cmp.Compare(a.slot.number, b.slot.number) })
	return list
}

// admit registers a session under its worker's process.
func (t *sessions) admit(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byProcess[s.worker.PID()] = s
	t.counts.SessionBegan()
}

// claim counts a session as one of a user's, unless the user has limit others already.
func (t *sessions) claim(s *session, principal string, limit int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := 0
	for _, other := range t.byProcess {
		if other != s && other.claimed == principal {
			others++
		}
	}
	if others >= limit {
		return fmt.Errorf("%s has %d sessions already, which is the limit; end one of them", principal, others)
	}
	s.claimed = principal
	return nil
}

// disclaim takes back what claim has done.
func (t *sessions) disclaim(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.claimed = ""
}

// waiting counts the sessions without a user from a network that began before a time.
// Called with mu held.
func (t *sessions) waiting(network netip.Prefix, before time.Time) (count int) {
	for _, s := range t.byProcess {
		if s.claimed == "" && !s.leaving && network.Contains(s.peer) && s.started.Before(before) {
			count++
		}
	}
	return count
}

// crowds reports whether more than limit connections from the network of a session are
// without a user, the session among them. The session then no longer counts, since it will
// be ended.
func (t *sessions) crowds(s *session, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.leaving = s.claimed == "" && t.waiting(networkOf(s.peer), time.Now()) > limit
	return s.leaving
}

// crowded reports whether limit connections from the network of a peer have been without a
// user for longer than hurry.
func (t *sessions) crowded(peer netip.Addr, limit int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting(networkOf(peer), time.Now().Add(-hurry)) >= limit
}

// networkOf returns what counts as one peer: an address, or of IPv6 a network of 64 bits,
// all of which one client may have.
func networkOf(peer netip.Addr) netip.Prefix {
	return netip.PrefixFrom(peer.WithZone(""), min(peer.BitLen(), 64)).Masked()
}

// dismiss removes a session that was admitted and whose worker has ended.
func (t *sessions) dismiss(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byProcess[s.worker.PID()] == s {
		delete(t.byProcess, s.worker.PID())
	}
	t.counts.SessionOver()
}
