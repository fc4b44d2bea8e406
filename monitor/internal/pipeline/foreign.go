// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/internal/runtimeroot"
)

// foreign returns what is asked before a running task opens a file of its runtime: whether it
// has come to belong to another monitor, or to a member of a pool, since the task started. The
// administrator chose where the library is.
func (t *Task) foreign(roots []string) func(path string) (bool, error) {
	services := t.pipeline.services
	return func(path string) (bool, error) {
		if pattern.IsBeneath(services.Options.Library, path) {
			return false, nil
		}
		others, err := services.DataOfOthers()
		if err != nil {
			return false, fmt.Errorf("cannot check whose %s is: %w", path, err)
		}
		return runtimeroot.IsOthers(path, roots, others)
	}
}
