// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestDecisions: everything but a timely yes is a denial.
func TestDecisions(t *testing.T) {
	tests := map[string]struct {
		decider Decider
		want    bool
	}{
		"yes":        {&scripted{open: func(OpenRequest) Verdict { return Verdict{} }}, true},
		"no":         {&scripted{open: func(OpenRequest) Verdict { return Verdict{Errno: unix.EACCES} }}, false},
		"panic":      {&scripted{open: func(OpenRequest) Verdict { panic("expected by the test") }}, false},
		"no decider": {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, _ := world(t, askSecret)
			if succeeded, _, got := attempt(t, spec, test.decider); succeeded != test.want {
				t.Errorf("succeeded %v: %v %s", succeeded, got.err, got.output)
			}
		})
	}
}

// TestDeathWhileDeciding: the task is killed while the monitor decides. Later
// requests of other tasks are answered and nothing leaks (traps 2, 8 and 9).
func TestDeathWhileDeciding(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		asked, decided := make(chan struct{}), make(chan struct{})
		spec, _ := world(t, askSecret)
		decider := &scripted{open: func(OpenRequest) Verdict {
			close(asked)
			<-decided
			return Verdict{}
		}}
		task, err := newBackend(t).Start(t.Context(), spec, decider)
		check(t, err)
		<-asked
		check(t, unix.Kill(task.PID(), unix.SIGKILL))
		<-task.Done()
		close(decided)
		if err := task.Err(); err == nil || err.Error() != "killed by SIGKILL" {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestSlowDecision: one task's slow decision does not hold up another's (trap 9).
func TestSlowDecision(t *testing.T) {
	asked, decided := make(chan struct{}), make(chan struct{})
	slow, _ := world(t, askSecret)
	task, err := newBackend(t).Start(t.Context(), slow, &scripted{open: func(OpenRequest) Verdict {
		close(asked)
		<-decided
		return Verdict{}
	}})
	check(t, err)
	<-asked
	quick, decider := world(t, askAllowed)
	if succeeded, errno, _ := attempt(t, quick, decider); !succeeded {
		t.Errorf("the other task failed with %v", errno)
	}
	close(decided)
	<-task.Done()
	if task.Err() != nil {
		t.Errorf("the slow task ended with %v", task.Err())
	}
}
