// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"sync"
	"time"
)

// maxRepeats limits the number of different denials that are remembered at a time. Each
// further one is recorded.
const maxRepeats = 4096

// denialKey holds the fields that make two denials identical: all but the facts, which
// follow from the others, and the latency.
type denialKey struct {
	pipeline, task, instance, principal, operation, conduit, policy, clause, reason string
}

func keyOf(e Event) denialKey {
	return denialKey{e.Pipeline, e.Task, e.Instance, e.Principal, e.Operation, e.Conduit, e.Policy, e.Clause, e.Reason}
}

// repeats counts identical denials: the first is recorded at once, those that follow
// within a window are recorded together at its end.
type repeats struct {
	window time.Duration
	mutex  sync.Mutex
	open   map[denialKey]*repeated
}

type repeated struct {
	until time.Time
	event Event // the last one
	count uint64
}

func newRepeats(window time.Duration) *repeats {
	return &repeats{window: window, open: map[denialKey]*repeated{}}
}

// absorb counts a denial that repeats an earlier one, and reports whether it did.
func (r *repeats) absorb(e Event, now time.Time) bool {
	if r.window <= 0 {
		return false
	}
	key := keyOf(e)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.open[key]; known != nil {
		known.count++
		known.event = e
		return true
	}
	if len(r.open) < maxRepeats {
		r.open[key] = &repeated{until: now.Add(r.window)}
	}
	return false
}

// due ends the windows that are over by now. It returns one event for each that counted
// anything. If a denial continues, it begins another window.
func (r *repeats) due(now time.Time, all bool) []Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var events []Event
	for key, known := range r.open {
		if !all && now.Before(known.until) {
			continue
		}
		if known.count == 0 {
			delete(r.open, key)
			continue
		}
		event := known.event
		event.Repeated = known.count
		events = append(events, event)
		known.count, known.until = 0, now.Add(r.window)
	}
	return events
}
