// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// restarted is a pipeline whose task runs a command of the shell without a sandbox.
const restarted = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: restarted}
spec:
  command: [/bin/sh, -c, "COMMAND"]
  taint: {name: open}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: p}
spec: {mode: baseline, tasks: [restarted]}
`

// dying says that it is ready when it ends. What it has said before takes the monitor
// longer to read than the program to write and end.
const dying = "yes | head -n 30000; echo ready"

// A task that dies again and again is started again later and later, and can be stopped,
// and started, while it waits.
func TestRestartsBackOff(t *testing.T) {
	s := newStack(t)
	s.open()
	m := s.monitor
	if err := applyText(m, strings.Replace(restarted, "COMMAND", dying, 1)); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	status := func() api.TaskStatus { return m.pipelines["p"].tasks["restarted"].status() }
	waits := func() bool {
		return strings.Contains(status().Message, "it has died 2 times in a row and starts again in 1s")
	}
	for range 2 {
		if _, err := m.StartTask(ctx, "p", "restarted"); err != nil {
			t.Fatal(err)
		}
		waiting.Until(t, "the task waits after its second death", waits)
		if got := status(); got.State != stateStarting || got.PID != 0 {
			t.Errorf("while it waits: %+v", got)
		}
	}
	if got, err := m.StopTask(ctx, "p", "restarted"); err != nil || got.State != stateStopped || got.Message != "" {
		t.Errorf("stopped while it waits: %+v, %v", got, err)
	}
	if _, err := m.StartTask(ctx, "p", "restarted"); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, "it dies for the third time",
		func() bool { return strings.Contains(status().Message, "3 times in a row and starts again in 2s") })
}

// A process that no sandbox confines can hold the output of a task open whose keeper was
// killed. The monitor waits for that output neither for ever nor when it stops the task.
func TestOutputThatDoesNotEnd(t *testing.T) {
	s := newStack(t)
	s.open()
	gate := filepath.Join(s.options.Data, "gate")
	s.must(os.MkdirAll(s.options.Data, 0o755))
	s.must(syscall.Mkfifo(gate, 0o644))
	closed, err := os.OpenFile(gate, os.O_RDWR, 0) // until it is removed and closed, a reader waits
	s.must(err)
	defer closed.Close()
	defer os.Remove(gate)
	command := "(setsid sh -c 'read -r line < " + gate + "' &); echo ready; exec sleep 1000"
	s.must(applyText(s.monitor, strings.Replace(restarted, "COMMAND", command, 1)))
	_, err = s.monitor.StartTask(t.Context(), "p", "restarted")
	s.must(err)
	task := s.monitor.pipelines["p"].tasks["restarted"]
	runs := func(restarts int) func() bool {
		return func() bool {
			got := task.status()
			return got.State == stateRunning && got.Restarts == restarts
		}
	}
	killKeeper := func() { s.must(syscall.Kill(parents(t)[task.status().PID], syscall.SIGKILL)) }

	waiting.Until(t, "the task is ready", runs(0))
	killKeeper()
	waiting.Until(t, "the task is started again", runs(1))
	killKeeper()
	s.must(s.monitor.pipelines["p"].quiesce(t.Context()))
	if got := task.status(); got.State != stateStopped {
		t.Errorf("stopped: %+v", got)
	}
}
