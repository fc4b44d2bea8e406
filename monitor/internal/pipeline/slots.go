// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"sync"
)

// slots are the places for a task's sessions: as many as its workers have pairs of
// conduits. All methods but stop and resume are safe for concurrent use.
type slots struct {
	vacancies chan struct{}   // one for each slot that is not reserved
	channels  [][]conduitPair // by slot
	stopped   int             // vacancies that stop has taken

	mu   sync.Mutex
	free []int // the last is taken first
}

// newSlots makes a slot for each element of channels, which lists the channels that the
// slot's sessions use.
func newSlots(channels [][]conduitPair) *slots {
	s := &slots{channels: channels, vacancies: make(chan struct{}, len(channels))}
	for number := range channels {
		s.free = append(s.free, len(channels)-1-number)
		s.vacancies <- struct{}{}
	}
	return s
}

// reserve waits for a slot. The caller releases it.
func (s *slots) reserve(ctx context.Context) (*slot, error) {
	select {
	case <-s.vacancies:
		return &slot{of: s, number: unoccupied}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop prevents new reservations and returns when no session has a slot. When late is closed
// first, it returns the number of sessions that still have one.
func (s *slots) stop(late <-chan struct{}) (left int) {
	for s.stopped < cap(s.vacancies) {
		select {
		case <-s.vacancies:
			s.stopped++
		case <-late:
			return cap(s.vacancies) - s.stopped
		}
	}
	return 0
}

// resume allows reservations again after stop.
func (s *slots) resume() {
	for ; s.stopped > 0; s.stopped-- {
		s.vacancies <- struct{}{}
	}
}

// slot is a place for one session, reserved before its connection is accepted and
// released when nothing of the session is left.
type slot struct {
	of       *slots
	number   int
	released sync.Once
}

// unoccupied is the number of a slot for which there is no connection yet.
const unoccupied = -1

// occupy gives the slot its number, which determines the conduits that the session uses.
func (s *slot) occupy() int {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	last := len(s.of.free) - 1 // there is one: the number of free slots is that of unreserved slots
	s.number, s.of.free = s.of.free[last], s.of.free[:last]
	return s.number
}

// release empties the slot's channels and frees the slot. Only the first call has an
// effect.
func (s *slot) release() {
	s.released.Do(func() {
		if s.number != unoccupied {
			for _, channel := range s.of.channels[s.number] {
				channel.drain()
			}
			s.of.mu.Lock()
			s.of.free = append(s.of.free, s.number)
			s.of.mu.Unlock()
		}
		s.of.vacancies <- struct{}{} // never blocks: there is room for every slot
	})
}
