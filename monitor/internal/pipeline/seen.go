// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"
	"sync"

	"shai.dev/monitor/internal/catalog"
)

// seen are instances that were seen but not analysed, and that are not on disk yet: a login does
// not wait for the disk, nor for a change that is being written. What a crash loses is seen
// again. It is safe for concurrent use.
type seen struct {
	storing sync.Mutex // by one at a time; held while what was taken is written
	writing sync.WaitGroup

	mu      sync.Mutex
	waiting []catalog.Prediction
}

// maxSeen limits what waits for the disk. What comes on top is not remembered.
const maxSeen = 1 << 12

// predict remembers an instance for the next analysis. It returns at once.
func (s *Services) predict(pipeline, task string, values map[string]string) {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if len(s.seen.waiting) >= maxSeen {
		return
	}
	s.seen.waiting = append(s.seen.waiting,
		catalog.Prediction{Task: catalog.NameIn(pipeline, task), Parameters: values})
	if len(s.seen.waiting) == 1 {
		s.seen.writing.Go(func() {
			if err := s.storeSeen(); err != nil {
				s.Logger.Error("instances that were seen are not remembered", "error", err)
			}
		})
	}
}

// storeSeen returns when all instances that were seen before are on disk.
func (s *Services) storeSeen() error {
	s.seen.storing.Lock()
	defer s.seen.storing.Unlock()
	s.seen.mu.Lock()
	taken := s.seen.waiting
	s.seen.waiting = nil
	s.seen.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	if err := s.Catalog.AddPredictions(taken...); err != nil {
		return fmt.Errorf("remember %d instances: %w", len(taken), err)
	}
	return nil
}
