// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestLimits: a program that stays within its limits succeeds, one that exceeds them
// fails, and none can raise them; in the sandbox and in mode baseline.
func TestLimits(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skipf("no python: %v", err)
	}
	const (
		take  = "b = bytearray(200 << 20); print('done')"
		open  = "import os; [os.dup(2) for _ in range(200)]; print('done')"
		raise = "import resource as r; r.setrlimit(r.%[1]s, (1 << 30, 1 << 30)); print('done')"
	)
	for _, test := range []struct {
		name, program string
		limits        plan.Limits
		want          string
	}{
		{"much memory", take, plan.Limits{}, "done"},
		{"much memory within the limit", take, plan.Limits{Memory: 400 << 20}, "done"},
		{"much memory beyond the limit", take, plan.Limits{Memory: 100 << 20}, "MemoryError"},
		{"many files", open, plan.Limits{}, "done"},
		{"many files within the limit", open, plan.Limits{OpenFiles: 512}, "done"},
		{"many files beyond the limit", open, plan.Limits{OpenFiles: 256}, "Too many open files"},
		{"raise the limit of memory", fmt.Sprintf(raise, "RLIMIT_DATA"), plan.Limits{Memory: 100 << 20},
			"not allowed to raise"},
		{"raise the limit of files", fmt.Sprintf(raise, "RLIMIT_NOFILE"), plan.Limits{OpenFiles: 256},
			"not allowed to raise"},
	} {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", test.name, confined), func(t *testing.T) {
				got := run(t, Spec{Spec: plan.Spec{
					Command: []string{python, "-I", "-c", test.program}, Runtime: runtimeOf(),
					WorkingDirectory: "/", Confined: confined, Limits: test.limits}}, &scripted{})
				if !strings.Contains(got.output, test.want) {
					t.Errorf("want %q; ended with %v, output:\n%s", test.want, got.err, got.output)
				}
			})
		}
	}
}
