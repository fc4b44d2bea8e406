// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor/api"
)

// leaking is a task that copies bob's document into a directory that everybody may
// read. Its taint, which may come from a policy of single files, ends where EXIT holds.
const leaking = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: bobs}
spec:
  text: |
    read       :- sKeyIs("bob").
    declassify :- isAsRestrictive(read, this.read) until EXIT.
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: open}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: state}
spec: {inline: [{conduit: released, says: topic, tuples: [[inbox]]}]}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: copy}
spec:
  run: Once
  command: [/usr/bin/python3, -Ic, 'open("/leak/secret", "w").write(open("$(DATA)/inbox/bob/1.txt").read())']
  runtimeName: system
  taint: {name: bobs}
  reads: [inbox]
  writes: [leak]
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: leaking}
spec:
  mode: shai
  tasks: [copy]
  conduits:
    - {name: inbox, kind: file, ingress: true, paths: [{path: "/inbox/bob/**", policy: {name: bobs}}]}
    - {name: leak, kind: file, directory: true, paths: [{path: "/leak/**", policy: {name: open}}]}
`

// A directory is granted for every name beneath it. So an exit that depends on the
// conduit's name or number stays closed for it, with any name, and other exits open: at
// the start of the task, in the analysis and in explanations.
func TestExitsByNameStayClosedForDirectories(t *testing.T) {
	for _, test := range []struct {
		name, exit string
		allowed    bool
	}{
		{"any name but one", `cNameIs(N), neq(N, "/leak/secret")`, false},
		{"any end but one", `cNameIs(N), concat(N, "/leak/", R), neq(R, "secret")`, false},
		{"any name", `cNameIs(_)`, false},
		{"that name", `cNameIs("/leak/secret")`, false},
		{"any number", `cIdIs(I), gt(I, 0)`, false},
		{"kind", `cKindIs(file)`, true},
		{"fact", `"released" says topic("inbox")`, true},
		{"another fact", `"released" says topic("outbox")`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStack(t)
			s.manifests = map[string]string{"pipeline.yaml": strings.Replace(leaking, "EXIT", test.exit, 1)}
			s.document("/inbox/bob/1.txt")
			s.options.Define["DATA"] = s.options.Data
			s.open()
			s.apply()
			if got := s.copies(); got != test.allowed {
				t.Errorf("the document is copied: %v, want %v", got, test.allowed)
			}
			p := s.monitor.pipelines["leaking"]
			found, err := analysis.RunInstance(p.Plan(), s.monitor.state(), analysis.Instance{Task: "copy"}, time.Now())
			s.must(err)
			if got := len(found.Writes) > 0; got != test.allowed {
				t.Errorf("the analysis validates the write: %v, want %v", got, test.allowed)
			}
			answer, err := s.monitor.Explain(t.Context(), api.Question{Task: "copy", Access: "write",
				Conduit: "/leak/other"})
			s.must(err)
			if answer.Allowed != test.allowed {
				t.Errorf("explained as allowed: %v, want %v", answer.Allowed, test.allowed)
			}
		})
	}
}

// copies runs the task, and returns whether the document was copied. A task that did not
// start was refused its directory.
func (s *stack) copies() bool {
	s.t.Helper()
	_, err := s.monitor.StartTask(s.t.Context(), "leaking", "copy")
	if err != nil && !strings.Contains(err.Error(), "may not write /leak") {
		s.t.Fatal(err)
	}
	if err == nil {
		status, err := s.monitor.WaitTask(s.t.Context(), "leaking", "copy")
		s.must(err)
		if status.State != "Succeeded" {
			s.t.Fatalf("copy: %s %s", status.State, status.Message)
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.options.Data, "leak/secret"))
	return strings.Contains(string(text), "the text")
}
