// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"
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
		limits        Limits
		want          string
	}{
		{"much memory", take, Limits{}, "done"},
		{"much memory within the limit", take, Limits{Memory: 400 << 20}, "done"},
		{"much memory beyond the limit", take, Limits{Memory: 100 << 20}, "MemoryError"},
		{"many files", open, Limits{}, "done"},
		{"many files within the limit", open, Limits{OpenFiles: 512}, "done"},
		{"many files beyond the limit", open, Limits{OpenFiles: 256}, "Too many open files"},
		{"raise the limit of memory", fmt.Sprintf(raise, "RLIMIT_DATA"), Limits{Memory: 100 << 20},
			"not allowed to raise"},
		{"raise the limit of files", fmt.Sprintf(raise, "RLIMIT_NOFILE"), Limits{OpenFiles: 256},
			"not allowed to raise"},
	} {
		for _, confined := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, confined %v", test.name, confined), func(t *testing.T) {
				got := run(t, Spec{Command: []string{python, "-I", "-c", test.program}, Runtime: runtimeOf(),
					WorkingDirectory: "/", Confined: confined, Limits: test.limits}, &scripted{})
				if !strings.Contains(got.output, test.want) {
					t.Errorf("want %q; ended with %v, output:\n%s", test.want, got.err, got.output)
				}
			})
		}
	}
}

func TestLimitBelowTheReservedNumbersIsRefused(t *testing.T) {
	_, err := planOf(Spec{Command: []string{"/bin/true"}, Limits: Limits{OpenFiles: 160}}, machine{})
	if err == nil || !strings.Contains(err.Error(), "160 are reserved") {
		t.Error(err)
	}
}
