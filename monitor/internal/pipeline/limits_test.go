// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"testing"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/sandbox/plan"
)

// A manifest's resources are the limits of the task.
func TestLimitsOfAManifest(t *testing.T) {
	for _, test := range []struct {
		resources *manifest.Resources
		want      plan.Limits
	}{
		{nil, plan.Limits{}},
		{&manifest.Resources{MemoryMegabytes: 1, OpenFiles: 2, Processes: 3, CPUMillicores: 4, TotalMemoryMegabytes: 5},
			plan.Limits{Memory: 1 << 20, OpenFiles: 2, Processes: 3, CPU: 4, TotalMemory: 5 << 20}},
	} {
		task := &Task{}
		task.spec.Resources = test.resources
		if got := task.limits(); got != test.want {
			t.Errorf("%+v: %+v, want %+v", test.resources, got, test.want)
		}
	}
}
