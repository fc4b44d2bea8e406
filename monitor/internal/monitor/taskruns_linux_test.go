// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// runsOnce starts a monitor with a pipeline p whose task runs a command of the shell once.
func runsOnce(t *testing.T, command string) *stack {
	t.Helper()
	s := newStack(t)
	s.open()
	s.must(applyText(s.monitor, onceText(command)))
	return s
}

func onceText(command string) string {
	text := strings.Replace(restarted, "COMMAND", command, 1)
	return strings.Replace(text, "  taint: {name: open}", "  run: Once\n  taint: {name: open}", 1)
}

func runOf(id string) api.TaskRunRequest {
	return api.TaskRunRequest{Pipeline: "p", Task: "restarted", ID: id}
}

func statusOf(err error) int {
	var problem *api.Problem
	if errors.As(err, &problem) {
		return problem.Status
	}
	return 0
}

// How a run has ended stays known, also after the next one.
func TestRunsOfATask(t *testing.T) {
	code := filepath.Join(openDirectory(t), "code")
	s := runsOnce(t, "read code < "+code+"; case $code in kill) kill -9 $$;; *) exit $code;; esac")
	for _, test := range []struct {
		code, state, signal, message string
		exit                         int
	}{
		{code: "0", state: "Succeeded"},
		{code: "3", state: "Failed", exit: 3, message: "exited with status 3"},
		{code: "kill", state: "Failed", exit: -1, signal: "SIGKILL", message: "killed by SIGKILL"},
	} {
		s.must(os.WriteFile(code, []byte(test.code+"\n"), 0o644))
		for range 2 { // the second request starts nothing
			if _, err := s.monitor.StartRun(t.Context(), runOf(test.code)); err != nil {
				t.Fatal(err)
			}
		}
		run, err := s.monitor.AwaitRun(t.Context(), runOf(test.code))
		if err != nil {
			t.Fatal(err)
		}
		exit := -1
		if run.ExitStatus != nil {
			exit = *run.ExitStatus
		}
		if run.State != test.state || exit != test.exit || run.Signal != test.signal || run.Message != test.message ||
			run.Ended == nil {
			t.Errorf("%s: %+v, exit %d", test.code, run, exit)
		}
	}
	status := s.monitor.pipelines["p"].Task("restarted").Status()
	if !status.Completed || status.State != "Failed" || status.LastRun.ID != "kill" {
		t.Errorf("after them: %+v", status)
	}
	first, err := s.monitor.AwaitRun(t.Context(), runOf("0"))
	if err != nil || first.State != "Succeeded" {
		t.Errorf("the first one later: %+v, %v", first, err)
	}
	if _, err := s.monitor.AwaitRun(t.Context(), runOf("7")); statusOf(err) != http.StatusNotFound {
		t.Errorf("a run that there was not: %v", err)
	}
}

// A start goes on when the one who asked for it is gone.
func TestRunsStartForThoseWhoAreGone(t *testing.T) {
	s := runsOnce(t, "exit 0")
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.monitor.StartRun(gone, runOf("left")); err != nil {
		t.Fatal(err)
	}
	if run, err := s.monitor.AwaitRun(t.Context(), runOf("left")); err != nil || run.State != "Succeeded" {
		t.Errorf("it ended as %+v, %v", run, err)
	}
}

// A run that goes on is not started twice, keeps others out, and ends with all its processes when
// it is stopped by its name.
func TestRunsKeepOthersOut(t *testing.T) {
	scratch := openDirectory(t)
	if err := os.Chmod(scratch, 0o777); err != nil { // the task has a user of its own
		t.Fatal(err)
	}
	pid := filepath.Join(scratch, "pid")
	s := runsOnce(t, "sleep 1000 & echo $! > "+pid+".new; mv "+pid+".new "+pid+"; wait")
	ctx := context.Background()
	if _, err := s.monitor.StartRun(ctx, runOf("first")); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, "its process runs", func() bool { _, err := os.Stat(pid); return err == nil })
	child, err := os.ReadFile(pid)
	s.must(err)
	if _, err := s.monitor.StartRun(ctx, runOf("second")); statusOf(err) != http.StatusConflict {
		t.Errorf("a second run beside it: %v", err)
	}
	never, err := s.monitor.StopRun(ctx, runOf("second"))
	if err != nil || never.State != "Stopped" || never.Message != "it was stopped before it began" {
		t.Errorf("stop the run that did not begin: %+v, %v", never, err)
	}
	if never, err = s.monitor.StartRun(ctx, runOf("second")); err != nil || never.State != "Stopped" {
		t.Errorf("start it after it was stopped: %+v, %v", never, err)
	}
	other := runOf("third")
	other.Started = s.monitor.started.Add(-time.Hour)
	if _, err := s.monitor.StartRun(ctx, other); statusOf(err) != http.StatusPreconditionFailed {
		t.Errorf("for an earlier life of the monitor: %v", err)
	}
	run, err := s.monitor.StopRun(ctx, runOf("first"))
	if err != nil || run.State != "Stopped" || run.Ended == nil {
		t.Errorf("stopped: %+v, %v", run, err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(child))); err == nil {
		t.Error("a process of the stopped run goes on")
	}
	again, err := s.monitor.StartRun(ctx, runOf("first"))
	if err != nil || again.State != "Stopped" {
		t.Errorf("started again after it had ended: %+v, %v", again, err)
	}
}

// A swap of bundles interrupts a run: the task is started again as the same run, and who waits for
// that is told its end.
func TestRunsOutliveSwaps(t *testing.T) {
	s := runsOnce(t, "sleep 1000")
	if _, err := s.monitor.StartRun(t.Context(), runOf("long")); err != nil {
		t.Fatal(err)
	}
	type result struct {
		run api.TaskRun
		err error
	}
	ended := make(chan result, 1)
	go func() {
		run, err := s.monitor.AwaitRun(context.Background(), runOf("long"))
		ended <- result{run, err}
	}()
	s.must(applyText(s.monitor, onceText("exit 4")))
	got := <-ended
	if got.err != nil || got.run.State != "Failed" || got.run.Restarts != 1 || got.run.ExitStatus == nil ||
		*got.run.ExitStatus != 4 {
		t.Errorf("the run under the new bundle: %+v, %v", got.run, got.err)
	}
}

// A run whose task the next bundle does not have ends.
func TestRunsEndWithTheirTask(t *testing.T) {
	s := runsOnce(t, "sleep 1000")
	if _, err := s.monitor.StartRun(t.Context(), runOf("long")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan api.TaskRun, 1)
	task := s.monitor.pipelines["p"].Task("restarted")
	go func() {
		run, err := task.AwaitRun(context.Background(), "long")
		if err != nil {
			t.Error(err)
			ended <- api.TaskRun{}
			return
		}
		ended <- *run
	}()
	text := strings.ReplaceAll(onceText("exit 4"), "restarted", "other")
	s.must(applyText(s.monitor, text))
	if run := <-ended; run.State != "Stopped" || run.Message != "the task is no longer in force" {
		t.Errorf("it ended as %+v", run)
	}
}
