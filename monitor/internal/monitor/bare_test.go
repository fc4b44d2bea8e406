// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/taskid"
)

// bareManifest is a pipeline of which no task ever runs: the tests ask the monitor's
// decisions directly.
const bareManifest = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: dropbox}
spec: {text: "read :- sKeyIs(\"admin\"). update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: diary}
spec:
  text: |
    policy diary(owner) {
      read :- sKeyIs(owner).
      read :- sKeyIs(K), concat(F, "friends/", owner), F says friend(K).
    }
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: offer}
spec: {text: "read :- timeIs(T), lt(T, 2100-01-01T00:00:00Z)."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: user}
spec:
  text: |
    policy user(name, region) { read :- sKeyIs(name), sRegionIs(region). }
---
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: population}
spec:
  inline:
    - {conduit: friends/alice, says: friend, tuples: [[bob]]}
    - {conduit: population, says: home, tuples: [[alice, de], [bob, de]]}
    - {conduit: regions, says: prefix, tuples: [["192.0.2.0/24", de]]}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: worker}
spec:
  command: [/bin/true]
  runtime: [/lib]
  run: Always
  parameters: [user, region]
  taint: {name: user, arguments: {name: "{user}", region: "{region}"}}
  reads: [documents]
  writes: [web]
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: collector}
spec:
  command: [/bin/true]
  runtime: [/lib]
  run: Once
  taint: {name: open}
  reads: [documents]
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: bare}
spec:
  mode: shai
  revocation: lazy
  tasks: [worker, collector]
  expect:
    - task: worker
      from: {conduit: population, says: home, parameters: [user, region]}
  conduits:
    - name: documents
      kind: file
      ingress: true
      paths:
        - {path: "/open/**", policy: {name: open}}
        - {path: "/dropbox/**", policy: {name: dropbox}}
        - {path: "/diary/{owner}/**", policy: {name: diary, arguments: {owner: "{owner}"}}}
        - {path: "/offer/**", policy: {name: offer}}
    - name: web
      kind: connection
      egress: true
      listen: "127.0.0.1:1"
      task: worker
`

// documentsOfBare are the files of bareManifest's pipeline.
var documentsOfBare = []string{"/open/1.txt", "/dropbox/1.txt", "/diary/alice/1.txt", "/offer/1.txt"}

// bareMonitor is a monitor with bareManifest in force and its documents linked.
func bareMonitor(t *testing.T) (*Monitor, *pipeline) {
	t.Helper()
	m, err := Open(context.Background(), bareOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	applyBare(t, m, bareManifest)
	return m, m.pipelines["bare"]
}

// bareOptions are those of a monitor with documents and nothing else.
func bareOptions(t *testing.T) Options {
	t.Helper()
	needSandbox(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	options := Options{
		Data: filepath.Join(root, "data"), State: filepath.Join(root, "state"),
		TaskIDs: taskUsers(root),
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, name := range documentsOfBare {
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

// bareTask represents a started task.
type bareTask struct {
	sandbox.Task
	name string
	pid  int
}

func (b bareTask) Name() string { return b.name }
func (b bareTask) PID() int     { return b.pid }
