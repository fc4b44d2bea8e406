// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
	"strings"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
)

// dying says that it is ready when it ends. What it has said before takes the monitor
// longer to read than the program to write and end.
const dying = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: dying}
spec:
  command: [/bin/sh, -c, "yes | head -n 30000; echo ready"]
  taint: {name: open}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: p}
spec: {mode: baseline, tasks: [dying]}
`

// A task that dies again and again is started again later and later, and can be stopped,
// and started, while it waits.
func TestRestartsBackOff(t *testing.T) {
	s := newStack(t)
	s.open()
	m := s.monitor
	if err := applyText(m, dying); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	status := func() api.TaskStatus { return m.pipelines["p"].tasks["dying"].status() }
	waits := func() bool {
		return strings.Contains(status().Message, "it has died 2 times in a row and starts again in 1s")
	}
	for range 2 {
		if _, err := m.StartTask(ctx, "p", "dying"); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the task waits after its second death", waits)
		if got := status(); got.State != stateStarting || got.PID != 0 {
			t.Errorf("while it waits: %+v", got)
		}
	}
	if got, err := m.StopTask(ctx, "p", "dying"); err != nil || got.State != stateStopped || got.Message != "" {
		t.Errorf("stopped while it waits: %+v, %v", got, err)
	}
	if _, err := m.StartTask(ctx, "p", "dying"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it dies for the third time",
		func() bool { return strings.Contains(status().Message, "3 times in a row and starts again in 2s") })
}
