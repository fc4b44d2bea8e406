// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestSessionsPrintNowhere: what a worker prints in a session is in no log, and the worker
// cannot keep the task's output under another number. The program's own output is there.
func TestSessionsPrintNowhere(t *testing.T) {
	const usersWord = "user 1" // what servingWorld's first user says
	prints := func(try string, waived plan.Protection) (errno unix.Errno, output string) {
		spec, decider := servingWorld(t, try)
		spec.waived = waived
		_, errno, got := attempt(t, spec, decider)
		return errno, got.output
	}
	if errno, output := prints("print plainly", 0); errno != 0 || strings.Contains(output, usersWord) {
		t.Errorf("errno %v, output %q", errno, output)
	}
	for _, kept := range []attack{
		{"print dup", plan.ReservedNumbers, unix.EPERM},
		{"print dup3", plan.ReservedNumbers, unix.EPERM},
		{"print fcntl", plan.ReservedNumbers, unix.EPERM},
		{"print open", plan.PathMediation | plan.EmptyRoot, unix.EACCES},
	} {
		if errno, output := prints(kept.try, 0); errno != kept.errno || strings.Contains(output, usersWord) {
			t.Errorf("%s: errno %v, want %v, output %q", kept.try, errno, kept.errno, output)
		}
		if errno, output := prints(kept.try, kept.off); errno != 0 || !strings.Contains(output, usersWord) {
			t.Errorf("%s without the protection: errno %v, output %q", kept.try, errno, output)
		}
	}
}
