// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"fmt"

	"shai.dev/monitor/internal/pattern"
	"shai.dev/monitor/internal/runtimeroot"
	"shai.dev/monitor/internal/sandbox/plan"
)

// foreign returns what is asked before a running task opens a file of its runtime, or learns of one
// that it has not been given: whether it belongs to another monitor, or to a member of a pool. It
// may have come to do so since the task started. The administrator chose where the library is.
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
		if !plan.Beneath(path, roots...) {
			return runtimeroot.IsOthers(path, []string{"/"}, others)
		}
		return runtimeroot.IsOthers(path, roots, others)
	}
}
