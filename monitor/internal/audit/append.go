// SPDX-License-Identifier: BSD-2-Clause

package audit

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Told is told of an event's record.
type Told interface {
	// Recorded is called with the record's number once it has one, maybe before Append returns.
	// It must not wait. Events that are not recorded by themselves have none.
	Recorded(number uint64)
}

// Append records an event. It does not wait for the disk. If the queue is full, it waits
// for MaxWait and then drops the event, unless that reports a change that has happened.
// After an error for an Allowed event, the access has to be refused if everything must be
// recorded. A denial remains one whatever Append returns.
func (l *Log) Append(e Event, told ...Told) error {
	now := l.options.clock()
	e = bounded(e)
	failure := l.Failing()
	if failure != nil && e.Allowed && l.options.RefuseUnrecorded && !isChange(e.Kind) {
		e.Allowed, e.Reason = false, boundedText(failure.Error(), maxText)
		l.denials.summarize(e, now)
		return fmt.Errorf("%w: %w", ErrFailing, failure)
	}
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return ErrClosed
	}
	if e.Kind == Denial || e.Kind == Binding && !e.Allowed {
		if !e.Allowed && (failure != nil || len(l.queue) > cap(l.queue)/2) {
			l.denials.summarize(e, now) // leaves the queue to events that nothing counts
			return nil
		}
		if l.denials.absorb(e, now) {
			return nil
		}
	}
	return l.enqueue(entry{e, now, told})
}

// CanPromise reports whether records can be promised now: whether there is space for events
// that are allowed.
func (l *Log) CanPromise() bool {
	l.closing.RLock()
	defer l.closing.RUnlock()
	return !l.closed && l.Failing() == nil
}

// AppendPromised records an event that was promised to be recorded, and has happened: if
// the disk has filled up since, the record goes into the space of the reserve, and if the
// queue is full, it waits besides it. Who promises bounds the number. The error is ErrClosed.
func (l *Log) AppendPromised(e Event, told ...Told) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return ErrClosed
	}
	one := entry{bounded(e), l.options.clock(), told}
	select {
	case l.queue <- one:
	default:
		l.kept.put(one)
	}
	return nil
}

func (l *Log) enqueue(e entry) error {
	select {
	case l.queue <- e:
		return nil
	default:
	}
	if isChange(e.event.Kind) {
		l.kept.put(e)
		return nil
	}
	wait := time.NewTimer(l.options.MaxWait)
	defer wait.Stop()
	select {
	case l.queue <- e:
		return nil
	case <-wait.C:
		l.lost.Add(1)
		return ErrQueueFull
	}
}

// isChange reports whether records of a kind say what has happened already. They are never
// refused and never dropped. Only people who run the monitor make them, and few.
func isChange(k Kind) bool {
	return k == Bundle || k == Fact || k == Task || k == Analysis
}

// overflow holds changes for which the queue has no place.
type overflow struct {
	mutex   sync.Mutex
	entries []entry
	waiting atomic.Int64 // their number
}

func (o *overflow) put(e entry) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.entries = append(o.entries, e)
	o.waiting.Add(1)
}

func (o *overflow) take() (e entry, more bool) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.entries) == 0 {
		return entry{}, false
	}
	e, o.entries = o.entries[0], o.entries[1:]
	o.waiting.Add(-1)
	return e, true
}

func (o *overflow) count() int { return int(o.waiting.Load()) }
