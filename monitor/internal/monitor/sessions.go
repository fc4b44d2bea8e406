// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// sessions are those of one pipeline, by their worker's process. They are safe for
// concurrent use.
type sessions struct {
	active prometheus.Gauge // their number

	mu        sync.Mutex
	byProcess map[int]*session
}

func newSessions(active prometheus.Gauge) *sessions {
	return &sessions{active: active, byProcess: map[int]*session{}}
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
	t.active.Inc()
}

// dismiss removes a session that was admitted and whose worker has ended.
func (t *sessions) dismiss(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byProcess[s.worker.PID()] == s {
		delete(t.byProcess, s.worker.PID())
	}
	t.active.Dec()
}
