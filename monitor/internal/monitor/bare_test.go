// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"shai.dev/monitor/internal/allowlist"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/taskid"
)

// bareMonitor is a monitor with pipelinetest.Bare in force and its documents linked.
func bareMonitor(t *testing.T, sources ...string) (*Monitor, *pipeline.Pipeline) {
	t.Helper()
	m, err := Open(context.Background(), bareOptions(t, sources...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	applyBare(t, m, pipelinetest.Bare)
	return m, m.pipelines["bare"]
}

// bareOptions are those of a monitor with documents and nothing else, which may use the
// sources.
func bareOptions(t *testing.T, sources ...string) Options {
	t.Helper()
	pipelinetest.NeedSandbox(t)
	allowed, err := allowlist.Parse(sources)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"),
		TaskIDs: taskUsers(root), Library: root, Define: pipelinetest.Define(t),
		Runtimes: pipelinetest.Runtimes("/nonexistent"), Allowed: allowed,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, name := range pipelinetest.BareDocuments {
		path := filepath.Join(options.Data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return options
}

// taskUsers is a registry in a directory. Other test programs, and other monitors of the
// machine, give other users: a monitor ends processes of its users that have no keeper.
func taskUsers(directory string) taskid.Registry {
	first := 1_000_000 + 100*uint32(os.Getpid())
	return taskid.Registry{Path: filepath.Join(directory, "task-ids.json"), Range: taskid.Range{First: first,
		Last: first + 99}}
}

func applyBare(t *testing.T, m *Monitor, text string) {
	t.Helper()
	if err := applyText(m, text); err != nil {
		t.Fatal(err)
	}
}

func applyText(m *Monitor, text string) error {
	_, err := m.Apply(context.Background(), api.ApplyRequest{Prune: true,
		Sources: []manifest.Source{{Name: "bare.yaml", Text: text}}})
	return err
}

func analyzeBare(t *testing.T, m *Monitor) {
	t.Helper()
	if _, err := m.Analyze(context.Background(), api.AnalyzeRequest{}, func(api.Progress) {}); err != nil {
		t.Fatal(err)
	}
}

// classOf is the class of a document.
func classOf(t *testing.T, m *Monitor, name string) uint32 {
	t.Helper()
	id, found := m.state().ID(name)
	if !found {
		t.Fatalf("no conduit is called %s", name)
	}
	return m.state().ClassOf(id)
}

// superviseBare starts the worker of pipeline "bare", in whose place, and in that of its
// supervisor, the result stands.
func superviseBare(t *testing.T, m *Monitor) *pipelinetest.Backend {
	t.Helper()
	backend := &pipelinetest.Backend{Backend: m.services.Backend}
	m.services.Backend = backend
	if _, err := m.StartTask(t.Context(), "bare", "worker"); err != nil {
		t.Fatal(err)
	}
	return backend
}

// holds reports whether an instance's capability set, as it is in force, has a class.
func holds(t *testing.T, backend *pipelinetest.Backend, instance string, class uint32) bool {
	t.Helper()
	set, inForce := backend.Supervisor().Set(instance)
	if !inForce {
		t.Fatalf("%s has no capability set", instance)
	}
	return slices.Contains(set.Classes, class)
}

// collectorOpens reports whether the task of pipeline "bare" that has no users may open a file.
func collectorOpens(t *testing.T, m *Monitor, name string, flags int) bool {
	t.Helper()
	self := os.Getpid()
	verdict := m.pipelines["bare"].Open(t.Context(), pipelinetest.OpenRequest(t, pipelinetest.NewTask("collector", self), self,
		filepath.Join(m.options.Data, name), flags))
	return verdict.Errno == 0
}
