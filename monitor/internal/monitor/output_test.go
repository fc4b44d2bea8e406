// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/waiting"
)

// clerk is a pipeline whose task prints one line.
const clerk = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: own}
spec:
  text: |
    policy own(owner) {
      read       :- sKeyIs(owner), sRegionIs("de").
      declassify :- isAsRestrictive(read, this.read) until EXIT.
    }
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: clerk}
spec:
  command: [$(PROBE)/probe_worker, register, clerk]
  runtimeName: probe
  taint: {name: own, arguments: {owner: OWNER}}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: office}
spec: {mode: MODE, tasks: [clerk]}
`

// employ applies the pipeline of the clerk.
func (s *stack) employ(owner, exit, mode string) {
	s.t.Helper()
	s.manifests["clerk.yaml"] = strings.NewReplacer("OWNER", owner, "EXIT", exit, "MODE", mode).Replace(clerk)
	s.apply()
}

// work lets the clerk print a line.
func (s *stack) work() {
	s.t.Helper()
	_, err := s.monitor.StartTask(s.t.Context(), "office", "clerk")
	s.must(err)
	_, err = s.monitor.WaitTask(s.t.Context(), "office", "clerk")
	s.must(err)
}

// readLog reads the clerk's log for a principal in a region, "alice de". It returns the
// number of lines, or -1 if it is denied.
func (s *stack) readLog(who string) int {
	s.t.Helper()
	principal, region, _ := strings.Cut(who, " ")
	log, err := s.monitor.TaskLog(s.t.Context(),
		api.TaskLogRequest{Pipeline: "office", Task: "clerk", As: principal, Region: region})
	var problem *api.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusForbidden {
		return -1
	}
	s.must(err)
	return strings.Count(log.Text, "\n")
}

// expectReaders compares what principals get of the clerk's log.
func (s *stack) expectReaders(when string, want map[string]int) {
	s.t.Helper()
	for who, lines := range want {
		if got := s.readLog(who); got != lines {
			s.t.Errorf("%s, %q gets %d lines, want %d", when, who, got, lines)
		}
	}
}

// What a task prints is under its taint: the policies decide who reads its log, and the
// administrator's readings are recorded as the others are.
func TestOutputIsUnderTheTaint(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.expectReaders("before the first start", map[string]int{"": 0, "alice de": 0})
	s.work()
	s.records()
	s.expectReaders("under alice's policy",
		map[string]int{"": 1, "alice de": 1, "alice fr": -1, "alice": -1, "bob de": -1})
	recorded := map[string]bool{}
	for _, r := range s.records() {
		if r.Conduit == "output:office/clerk" && r.Operation == "leave" {
			recorded[r.Principal] = r.Allowed || recorded[r.Principal]
			if r.Allowed != (r.Kind == audit.Decision) {
				t.Errorf("%+v", r)
			}
		}
	}
	if len(recorded) != 3 || !recorded[""] || !recorded["alice"] || recorded["bob"] {
		t.Errorf("recorded: %v", recorded)
	}
	s.employ("alice", "cKindIs(output), cNameIs(N), concat(N, \"output:office/\", _)", "shai")
	s.work()
	s.expectReaders("with an exit for output", map[string]int{"bob de": 1})
}

// The log's label is what it was when the text was printed: text from before a change of
// the taint is shown to nobody whom only the new one admits.
func TestOutputKeepsItsLabel(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	s.close()
	s.open()
	s.work()
	s.expectReaders("after the monitor's restart", map[string]int{"alice de": 2})
	s.employ("bob", "cKindIs(descriptor)", "shai")
	s.expectReaders("under bob's policy", map[string]int{"": 0, "alice de": -1, "bob de": 0})
	s.work()
	s.expectReaders("under bob's policy", map[string]int{"": 1, "bob de": 1})
	s.employ("bob", "cKindIs(descriptor)", "baseline")
	s.work()
	s.expectReaders("in mode baseline", map[string]int{"": 1, "alice de": -1, "bob de": -1})
	s.employ("bob", "cKindIs(descriptor)", "shai")
	s.expectReaders("after mode baseline", map[string]int{"bob de": 1})
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	s.expectReaders("the second last label's log is removed", map[string]int{"alice de": 1})
}

// Only the monitor's user can open a log.
func TestLogsArePrivate(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.work()
	files := 0
	s.must(filepath.WalkDir(filepath.Join(s.options.State, "logs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() == fs.ModeSymlink { // names a log; it has no permissions of its own
			return err
		}
		about, err := os.Lstat(path)
		if err == nil && about.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, about.Mode())
		}
		if !entry.IsDir() {
			files++
		}
		return err
	}))
	if files != 1 {
		t.Errorf("%d files", files)
	}
}

// An administrator's reading that cannot be recorded does not happen.
func TestUnrecordedReadingIsRefused(t *testing.T) {
	s := newStack(t)
	s.open()
	s.employ("alice", "cKindIs(descriptor)", "shai")
	s.must(s.monitor.audit.Close())
	for _, who := range []string{"", "alice"} {
		_, err := s.monitor.TaskLog(t.Context(),
			api.TaskLogRequest{Pipeline: "office", Task: "clerk", As: who, Region: "de"})
		if err == nil || !strings.Contains(err.Error(), "cannot be recorded") {
			t.Errorf("%q: %v", who, err)
		}
	}
	var err error
	s.monitor.audit, err = audit.Open(audit.Options{Directory: s.auditDirectory(), RefuseUnrecorded: true})
	s.must(err)
	s.monitor.services.Audit = s.monitor.audit
}

// A worker prints what its user has read. Nobody finds it in the log, which holds what the
// program has printed itself.
func TestSessionsAreNotLogged(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.document("/corpus/private/alice/1.txt")
	s.start()
	alice := s.login("alice", "127.0.1.1")
	text := alice.must("read " + strconv.Itoa(int(s.id("/corpus/private/alice/1.txt"))))
	if !strings.Contains(text, "/corpus/private/alice/1.txt") {
		t.Fatal(text)
	}
	if answer := alice.must("print " + text); answer != "printed" {
		t.Errorf("print: %s", answer)
	}
	_, err := s.monitor.StopTask(t.Context(), "probe", "worker")
	s.must(err)
	var log api.TaskLog
	waiting.Until(t, "what the program has printed is in the log", func() bool {
		log, err = s.monitor.TaskLog(t.Context(), api.TaskLogRequest{Pipeline: "probe", Task: "worker", As: "bob"})
		s.must(err)
		return log.Text != ""
	})
	if log.Text != "ready\n" || log.Label != "no obligations" {
		t.Errorf("%+v", log)
	}
}
