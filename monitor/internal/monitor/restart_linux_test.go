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

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
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
	var got api.TaskStatus
	waits := func() bool {
		got = status()
		return got.Message == "it has died 2 times in a row and starts again in 1s"
	}
	for range 2 {
		if _, err := m.StartTask(ctx, "p", "restarted"); err != nil {
			t.Fatal(err)
		}
		waiting.Until(t, "the task waits after its second death", waits)
		if got.State != stateStarting || got.PID != 0 || got.LastEnd != "ended by itself" {
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
	command := "(setsid sh -c 'echo ready; read -r line < " + s.gate().Name() + "' &); exec sleep 1000"
	s.must(applyText(s.monitor, strings.Replace(restarted, "COMMAND", command, 1)))
	_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
	s.must(err)
	task := s.monitor.pipelines["p"].tasks["restarted"]
	killKeeper := func() { s.must(syscall.Kill(parents(t)[task.status().PID], syscall.SIGKILL)) }

	waiting.Until(t, "the task is ready", task.runs(0))
	killKeeper()
	waiting.Until(t, "the task is started again", task.runs(1))
	killKeeper()
	s.must(s.monitor.pipelines["p"].quiesce(t.Context()))
	if got := task.status(); got.State != stateStopped {
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
	task := s.monitor.pipelines["p"].tasks["restarted"]
	start := func() {
		_, err := s.monitor.StartTask(t.Context(), "p", "restarted")
		s.must(err)
	}
	end := func() {
		_, err := gate.WriteString("\n")
		s.must(err)
	}
	start()
	waiting.Until(t, "the task is ready", task.runs(0))
	first := task.status()
	if first.LastEnd != "" || first.Message != "" {
		t.Errorf("started once: %+v", first)
	}
	end()
	waiting.Until(t, "the task is started again", task.runs(1))
	second := task.status()
	if second.LastEnd != "exited with status 3" || second.Message != "" || !second.Since.After(*first.Since) {
		t.Errorf("started again: %+v, the first time %+v", second, first)
	}
	before := time.Now()
	end()
	waiting.Until(t, "the task is started after a delay", task.runs(2))
	third := task.status()
	if third.Message != "" || third.Since.Before(before.Add(firstDelay)) {
		t.Errorf("started after a delay: %+v, it ended after %v", third, before)
	}
	_, err := s.monitor.StopTask(t.Context(), "p", "restarted")
	s.must(err)
	start()
	waiting.Until(t, "the task is ready once more", task.runs(0))
	if got := task.status(); got.LastEnd != "" {
		t.Errorf("started anew: %+v", got)
	}
}

// Workers of an earlier program do not make the present one ready.
func TestWorkersOfAnEarlierStart(t *testing.T) {
	present := &sandboxedTask{}
	task := &runningTask{state: stateStarting, ready: make(chan struct{}), started: present}
	task.idle(&sandboxedTask{}, 1)
	if task.state != stateStarting {
		t.Error("ready by a worker of an earlier program")
	}
	task.idle(present, 1)
	if task.state != stateRunning {
		t.Errorf("not ready by its own worker: %s", task.state)
	}
}

// sandboxedTask stands for one start of a program.
type sandboxedTask struct {
	sandbox.Task
	_ byte // so that each has an address of its own
}

// What a process of an earlier program says does not make the present one ready: where
// there are no cgroups, it may live on when the keeper was killed.
func TestReadinessOfAnEarlierStart(t *testing.T) {
	earlier, present := make(chan struct{}), make(chan struct{})
	task := &runningTask{state: stateStarting, ready: present}
	task.saysReady(earlier)
	if task.state != stateStarting {
		t.Error("the earlier program's word made the present one ready")
	}
	task.saysReady(present)
	if task.state != stateRunning {
		t.Errorf("the present program said that it is ready, and is %s", task.state)
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
func (t *runningTask) runs(restarts int) func() bool {
	return func() bool {
		got := t.status()
		return got.State == stateRunning && got.Restarts == restarts
	}
}
