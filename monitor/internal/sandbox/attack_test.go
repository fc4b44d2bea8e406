// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// An attack must fail in the sandbox, and must succeed when the protections in
// off are waived: a test that cannot see a success proves nothing.
type attack struct {
	try string
	off plan.Protection
	// errno is how it fails; 0 is not compared, killed means that the process is.
	errno syscall.Errno
}

const killed = ^syscall.Errno(0)

func TestAttacks(t *testing.T) {
	for _, attack := range attacks {
		t.Run(attack.try, func(t *testing.T) {
			spec, decider := world(t, attack.try)
			succeeded, errno, got := attempt(t, spec, decider)
			if succeeded {
				t.Errorf("succeeded in the sandbox: %s", got.output)
			} else if attack.errno != 0 && errno != attack.errno {
				t.Errorf("failed with %v (%v), want %v: %s", errno, got.err, attack.errno, got.output)
			}
			if strings.Contains(got.output, "secret") {
				t.Errorf("the secret came out: %q", got.output)
			}
			spec, decider = world(t, attack.try)
			spec.waived = attack.off
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded && !reachedHarmlessly(attack, got) {
				t.Errorf("failed with protections %#x off, errno %v: %v %s", attack.off, errno, got.err, got.output)
			}
		})
	}
}

// reachedHarmlessly reports whether the exec succeeded: the executed victim has no
// argument and exits with 2.
func reachedHarmlessly(attack attack, got outcome) bool {
	return strings.Contains(attack.try, "exec") && got.err != nil && got.err.Error() == "exited with status 2"
}

func TestTwins(t *testing.T) {
	for _, try := range twins {
		t.Run(try, func(t *testing.T) {
			spec, decider := world(t, try)
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("failed with %v: %v %s; refused %v", errno, got.err, got.output, decider.refused)
			}
		})
	}
}
