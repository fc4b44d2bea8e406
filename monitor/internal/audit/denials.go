// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Limits on what the denials of one task add to the log. A task can ask for as many
// accesses with as many names as it likes; each is denied and counted, but not each is
// recorded by itself.
const (
	denialRate    = 4 << 10     // bytes a second
	denialBurst   = 256 << 10   // bytes after a time without denials
	recordFrame   = 300         // bytes of a record beside its event
	maxRepeats    = 4096        // different denials that are remembered at a time
	failingWindow = time.Minute // between summaries while records cannot be written
	maxLast       = 256         // bytes of a summary's example
	fullAfter     = denialBurst / denialRate * time.Second
)

// denialKey holds the fields that make two denials identical: all but the facts, which
// follow from the others, and the latency.
type denialKey struct {
	pipeline, task, instance, principal, operation, conduit, policy, clause, reason string
}

func keyOf(e Event) denialKey {
	return denialKey{e.Pipeline, e.Task, e.Instance, e.Principal, e.Operation, e.Conduit, e.Policy, e.Clause, e.Reason}
}

// denials counts those that are not recorded by themselves. Of identical ones, the first is
// recorded at once, and those that follow within a window are recorded together at its end.
// What exceeds a task's allowance is recorded in a summary, one for each window.
type denials struct {
	window  time.Duration
	mutex   sync.Mutex
	open    map[denialKey]*repeated
	tasks   map[taskKey]*allowance
	omitted uint64 // since the start
}

type repeated struct {
	until time.Time
	event Event // the last one
	count uint64
}

// taskKey says whose allowance a denial needs: a task's, or, of a login, the peer's, so that
// one peer does not keep others' logins out of the log.
type taskKey struct{ pipeline, task, peer string }

// peersMax limits how many peers have allowances of their own at a time. Others share one.
const peersMax = 4096

func (d *denials) taskOf(e Event) taskKey {
	key := taskKey{pipeline: e.Pipeline, task: e.Task}
	if e.Kind != Binding {
		return key
	}
	key.peer = networkOf(e.Conduit)
	if d.tasks[key] == nil && len(d.tasks) >= peersMax {
		key.peer = "other addresses"
	}
	return key
}

// networkOf returns an address, or of IPv6 its network of 64 bits, all of which one client
// may have.
func networkOf(peer string) string {
	address, err := netip.ParseAddr(peer)
	if err != nil || address.Is4() {
		return peer
	}
	return netip.PrefixFrom(address.WithZone(""), 64).Masked().String()
}

// allowance is what a task's denials may still add to the log. The last record may exceed
// it, and the next ones then wait longer.
type allowance struct {
	bytes   int64
	at      time.Time // of bytes
	said    time.Time // of the last summary
	omitted uint64    // since then
	last    Event     // of the omitted ones
}

func newDenials(window time.Duration) *denials {
	return &denials{window: window, open: map[denialKey]*repeated{}, tasks: map[taskKey]*allowance{}}
}

// absorb counts a denial that is not to be recorded by itself, and reports whether it is
// one. An access that was allowed all the same, because its policy is not enforced, is
// recorded unless it repeats another one.
func (d *denials) absorb(e Event, now time.Time) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	key := keyOf(e)
	known := d.open[key]
	if known != nil && (known.count > 0 || now.Before(known.until)) {
		known.count++
		known.event = e
		return true
	}
	if !e.Allowed && !d.charge(e, now) {
		d.omit(e, 1, now)
		return true
	}
	if known != nil || len(d.open) < maxRepeats {
		d.open[key] = &repeated{until: now.Add(d.window)}
	}
	return false
}

// summarize counts a denial for its task's next summary only.
func (d *denials) summarize(e Event, now time.Time) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.omit(e, 1, now)
}

func (d *denials) omit(e Event, count uint64, now time.Time) {
	a := d.allowanceOf(e, now)
	a.omitted += count
	a.last = e
	d.omitted += count
}

// total returns the number of denials that only summaries count.
func (d *denials) total() uint64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.omitted
}

func (d *denials) allowanceOf(e Event, now time.Time) *allowance {
	key := d.taskOf(e)
	a := d.tasks[key]
	if a == nil {
		a = &allowance{bytes: denialBurst, at: now}
		d.tasks[key] = a
	}
	// Limited first: a long time would overflow the product.
	waited := min(max(now.Sub(a.at), 0), 2*fullAfter)
	a.bytes = min(denialBurst, a.bytes+int64(waited)*denialRate/int64(time.Second))
	a.at = now
	return a
}

// charge takes what a record needs from its task's allowance. It reports whether there was
// any left.
func (d *denials) charge(e Event, now time.Time) bool {
	a := d.allowanceOf(e, now)
	if a.bytes <= 0 {
		return false
	}
	text, err := json.Marshal(e)
	if err != nil {
		return false
	}
	a.bytes -= int64(len(text)) + recordFrame
	return true
}

// due ends the windows that are over by now, or all. It returns one event for each that
// counted anything. If a denial continues, it begins another window.
func (d *denials) due(now time.Time, all, failing bool) []Event {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var events []Event
	for key, known := range d.open {
		if !all && now.Before(known.until) {
			continue
		}
		if known.count == 0 {
			delete(d.open, key)
			continue
		}
		event := known.event
		event.Repeated = known.count
		if !all && !event.Allowed && (failing || !d.charge(event, now)) {
			d.omit(event, known.count, now)
			delete(d.open, key)
			continue
		}
		events = append(events, event)
		known.count, known.until = 0, now.Add(d.window)
	}
	return append(events, d.summaries(now, all, failing)...)
}

// summaries returns an event for each task with denials that were not recorded.
func (d *denials) summaries(now time.Time, all, failing bool) []Event {
	window := d.window
	if failing {
		window = failingWindow
	}
	var events []Event
	for key, a := range d.tasks {
		switch {
		case a.omitted == 0 && now.Sub(a.at) > fullAfter+failingWindow:
			delete(d.tasks, key)
		case a.omitted > 0 && (all || now.Sub(a.said) >= window):
			events = append(events, a.summary(key))
			a.omitted, a.said = 0, now
		}
	}
	return events
}

func (a *allowance) summary(key taskKey) Event {
	what := "denials"
	if key.peer != "" {
		what = "refused logins from " + key.peer
	}
	example := a.last.Operation + " " + a.last.Conduit + ": " + a.last.Reason
	return Event{Kind: Denial, Pipeline: key.pipeline, Task: key.task, Omitted: a.omitted,
		Reason: fmt.Sprintf("%d %s are not recorded one by one; the last one: %s", a.omitted, what,
			boundedText(example, maxLast))}
}
