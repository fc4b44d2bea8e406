// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestLimits: a program that stays within its limits succeeds, and one that exceeds
// them fails; in the sandbox and in mode baseline.
func TestLimits(t *testing.T) {
	for _, test := range []struct {
		try    string
		limits plan.Limits
		errno  unix.Errno
	}{
		{"map-much", plan.Limits{}, 0},
		{"map-much", plan.Limits{Memory: 8 << 30}, 0},
		{"map-much", plan.Limits{Memory: 3 << 30}, unix.ENOMEM},
		{"open-many", plan.Limits{OpenFiles: 1024}, 0},
		{"open-many", plan.Limits{OpenFiles: 256}, unix.EMFILE},
	} {
		for _, isConfined := range []bool{true, false} {
			spec, decider := world(t, test.try)
			spec.Confined, spec.Limits = isConfined, test.limits
			if _, errno, got := attempt(t, spec, decider); errno != test.errno {
				t.Errorf("%s, %+v, confined %v: %v, want %v: %v %s", test.try, test.limits, isConfined, errno,
					test.errno, got.err, got.output)
			}
		}
	}
}

// TestCPUs: a pinned task has one processor.
func TestCPUs(t *testing.T) {
	spec, decider := world(t, "processors")
	spec.CPUs = []int{0}
	if got := run(t, spec, decider); got.output != "1\n" {
		t.Errorf("%q, %v", got.output, got.err)
	}
}
