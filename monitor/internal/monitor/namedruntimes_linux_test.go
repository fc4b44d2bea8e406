// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/runtimeroot"
)

// refusedStart starts the task, which has to be refused and recorded with this reason.
func (s *stack) refusedStart(want string) {
	s.t.Helper()
	s.records()
	_, err := s.monitor.StartTask(s.t.Context(), "snoop", "snoop")
	if err == nil || !strings.Contains(err.Error(), want) {
		s.t.Errorf("the start: %v, want %s", err, want)
	}
	if !slices.ContainsFunc(s.records(), func(r audit.Record) bool {
		return r.Kind == audit.Denial && strings.Contains(r.Reason, want)
	}) {
		s.t.Errorf("the audit log has no record of %s", want)
	}
}

// A task gets no runtime but those that the monitor was given: others are refused when a bundle is
// applied, and when a task starts whose runtime the monitor has no more.
func TestRuntimeThatTheMonitorDoesNotHave(t *testing.T) {
	s, _ := snooping(t)
	const want = "pipeline snoop: task snoop names runtime others, and there is only probe, snoop, system; name another one"
	err := s.applyThis(strings.Replace(snoop, "runtimeName: snoop", "runtimeName: others", 1))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	s.must(s.applyThis(snoop))
	s.close()
	delete(s.options.Runtimes, "snoop")
	s.open()
	s.refusedStart("task snoop/snoop names runtime snoop, and there is only probe, system; name another one")
}

// Variables of a pipeline say nothing about a runtime: its paths have the values that the monitor was given.
func TestVariablesOfAPipelineAreNotThoseOfARuntime(t *testing.T) {
	s, root := snooping(t)
	programs := filepath.Join(root, "programs")
	s.must(os.WriteFile(programs+"/own", []byte("text"), 0o644))
	for _, value := range []string{s.options.Data, "/", "../x"} {
		s.options.Define["FILE"] = programs + "/own"
		named, err := runtimeroot.Define([]string{"snoop=$(PROGRAMS),/bin,/lib,/usr/lib,/lib64"},
			map[string]string{"PROGRAMS": programs})
		s.must(err)
		s.options.Runtimes["snoop"] = named["snoop"]
		s.must(s.applyThis(strings.Replace(snoop, "  tasks: [snoop]",
			"  variables: [{name: PROGRAMS, value: "+value+"}]\n  tasks: [snoop]", 1)))
		_, err = s.monitor.StartTask(t.Context(), "snoop", "snoop")
		s.must(err)
		status, err := s.monitor.WaitTask(t.Context(), "snoop", "snoop")
		s.must(err)
		if status.State != "Succeeded" {
			t.Errorf("PROGRAMS %s: %s %s", value, status.State, status.Message)
		}
	}
}

// A task without a runtime has no program to start. In mode baseline it opens the program itself.
func TestTaskWithoutARuntime(t *testing.T) {
	s, _ := snooping(t)
	bare := strings.Replace(snoop, "  runtimeName: snoop\n", "", 1)
	s.must(s.applyThis(bare))
	s.refusedStart("not in the task's runtime (the task names no runtime; name one that has its program in spec.runtimeName)")
	s.must(s.applyThis(strings.Replace(bare, "  tasks: [snoop]", "  mode: baseline\n  tasks: [snoop]", 1)))
	_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
	s.must(err)
	_, err = s.monitor.WaitTask(t.Context(), "snoop", "snoop")
	s.must(err)
}

// A link that a task has made beneath its runtime leads to nothing that the runtime has not: only the
// runtime's own paths are followed, when the task starts.
func TestLinksBeneathARuntime(t *testing.T) {
	s, root := snooping(t)
	programs := filepath.Join(root, "programs")
	s.must(os.WriteFile(filepath.Join(root, "outside"), []byte("text"), 0o644))
	s.must(os.WriteFile(programs+"/own", []byte("text"), 0o644))
	s.must(os.Symlink(programs+"/own", programs+"/inside"))
	s.must(os.Symlink(filepath.Join(root, "outside"), programs+"/out"))
	s.must(os.Symlink(s.options.Define["FILE"], programs+"/document"))
	for name, readable := range map[string]bool{"inside": true, "out": false, "document": false} {
		s.options.Define["FILE"] = filepath.Join(programs, name)
		s.must(s.applyWithRuntime(snoop, programs))
		_, err := s.monitor.StartTask(t.Context(), "snoop", "snoop")
		s.must(err)
		status, err := s.monitor.WaitTask(t.Context(), "snoop", "snoop")
		s.must(err)
		if (status.State == "Succeeded") != readable {
			t.Errorf("%s: %s (%s)", name, status.State, status.Message)
		}
	}
}

// A bundle that was stored when tasks chose the paths of their runtimes does not keep the monitor from
// starting. Its tasks do not start.
func TestStoredBundleWithPathsOfARuntime(t *testing.T) {
	s, _ := snooping(t)
	s.must(s.applyThis(snoop))
	former := strings.ReplaceAll(string(s.monitor.currentBundle().Canonical()), `"runtimeName":"snoop"`,
		`"runtime":["/bin","/lib","/usr/lib","/lib64"]`)
	bundle, err := manifest.Restore([]byte(former))
	s.must(err)
	stored, err := meaning.ForCatalog(bundle, s.options.Data)
	s.must(err)
	_, err = s.monitor.catalog.Apply(stored)
	s.must(err)
	s.close()
	s.open()
	s.refusedStart("task snoop/snoop lists the paths of its runtime in spec.runtime, as a task no longer can; write spec.runtimeName")
	s.must(s.applyThis(snoop))
	_, err = s.monitor.StartTask(t.Context(), "snoop", "snoop")
	s.must(err)
}
