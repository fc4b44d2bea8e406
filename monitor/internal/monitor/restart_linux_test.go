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
	"time"

	"shai.dev/monitor/internal/pipeline"
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
	status := func() pipeline.TaskStatus { return m.pipelines["p"].Task("restarted").Status() }
	var got pipeline.TaskStatus
	waits := func() bool {
		got = status()
		return got.Message == "it has died 2 times in a row and starts again in 1s"
	}
	for range 2 {
		if _, err := m.StartTask(ctx, "p", "restarted"); err != nil {
			t.Fatal(err)
		}
		waiting.Until(t, "the task waits after its second death", waits)
		if got.State != "Starting" || got.PID != 0 || got.LastEnd != "ended by itself" {
			t.Errorf("while it waits: %+v", got)
		}
	}
	if got, err := m.StopTask(ctx, "p", "restarted"); err != nil || got.State != "Stopped" || got.Message != "" {
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
	command := "(setsid sh -c 'echo ready; read -r line < " + s.gate().Name() + "' &); exec sleep 1000"
	s.must(applyText(s.monitor, strings.Replace(restarted, "COMMAND", command, 1)))
	_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
	s.must(err)
	task := s.monitor.pipelines["p"].Task("restarted")
	killKeeper := func() { s.must(syscall.Kill(parents(t)[task.Status().PID], syscall.SIGKILL)) }

	waiting.Until(t, "the task is ready", runs(task, 0))
	killKeeper()
	waiting.Until(t, "the task is started again", runs(task, 1))
	killKeeper()
	s.must(s.monitor.pipelines["p"].Quiesce(t.Context()))
	if got := task.Status(); got.State != "Stopped" {
		t.Errorf("stopped: %+v", got)
	}
}

// The status of a task that was started again describes the present program, and tells
// apart how the one before had ended.
func TestStatusOfARestartedTask(t *testing.T) {
	s := newStack(t)
	s.open()
	gate := s.gate()
	s.must(applyText(s.monitor, strings.Replace(restarted, "COMMAND", "echo ready; read -r line < "+gate.Name()+
		"; exit 3", 1)))
	task := s.monitor.pipelines["p"].Task("restarted")
	start := func() {
		_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
		s.must(err)
	}
	end := func() {
		_, err := gate.WriteString("\n")
		s.must(err)
	}
	start()
	waiting.Until(t, "the task is ready", runs(task, 0))
	first := task.Status()
	if first.LastEnd != "" || first.Message != "" {
		t.Errorf("started once: %+v", first)
	}
	end()
	waiting.Until(t, "the task is started again", runs(task, 1))
	second := task.Status()
	if second.LastEnd != "exited with status 3" || second.Message != "" || !second.Since.After(*first.Since) {
		t.Errorf("started again: %+v, the first time %+v", second, first)
	}
	before := time.Now()
	end()
	waiting.Until(t, "the task is started after a delay", runs(task, 2))
	third := task.Status()
	if third.Message != "" || third.Since.Before(before.Add(time.Second)) {
		t.Errorf("started after a delay: %+v, it ended after %v", third, before)
	}
	_, err := s.monitor.StopTask(t.Context(), "p", "restarted")
	s.must(err)
	start()
	waiting.Until(t, "the task is ready once more", runs(task, 0))
	if got := task.Status(); got.LastEnd != "" {
		t.Errorf("started anew: %+v", got)
	}
}

// gate returns a named pipe in the data directory. Those who read a line of it wait until
// the test writes one, or ends.
func (s *stack) gate() *os.File {
	s.t.Helper()
	path := filepath.Join(s.options.Data, "gate")
	s.must(os.MkdirAll(s.options.Data, 0o755))
	s.must(os.Chmod(s.options.Data, 0o755)) // whatever the umask
	s.must(syscall.Mkfifo(path, 0o644))
	s.must(os.Chmod(path, 0o644))
	gate, err := os.OpenFile(path, os.O_RDWR, 0)
	s.must(err)
	s.t.Cleanup(func() {
		os.Remove(path)
		gate.Close()
	})
	return gate
}

// runs returns a condition: the task can serve, after a number of restarts.
func runs(t *pipeline.Task, restarts int) func() bool {
	return func() bool {
		got := t.Status()
		return got.State == "Running" && got.Restarts == restarts
	}
}
