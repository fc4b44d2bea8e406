// SPDX-License-Identifier: BSD-2-Clause

package meaning

import (
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

const meaningManifest = `
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: files}
spec: {text: "read :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: taint}
spec: {text: "read :- true. update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: pipes}
spec: {text: "read :- true. update :- cIsInternal()."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: elsewhere}
spec: {text: "read :- true. update :- sKeyIs(\"x\")."}
---
apiVersion: shai.dev/v1alpha1
kind: FactSource
metadata: {name: facts}
spec: {inline: [{conduit: a, says: b, tuples: [[c]]}]}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: one}
spec: {command: [/bin/true], taint: {name: taint}, reads: [in], writes: [pipe]}
---
apiVersion: shai.dev/v1alpha1
kind: Task
metadata: {name: two}
spec: {command: [/bin/true], taint: {name: taint}, reads: [pipe]}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: mine}
spec:
  tasks: [one, two]
  conduits:
    - {name: in, kind: file, ingress: true, paths: [{path: "/mine/**", policy: {name: files}}]}
    - {name: pipe, kind: pipe, from: one, to: two, policy: {name: pipes}}
---
apiVersion: shai.dev/v1alpha1
kind: Pipeline
metadata: {name: theirs}
spec:
  tasks: [two]
  conduits:
    - {name: pipe, kind: file, ingress: true, paths: [{path: "/theirs/**", policy: {name: elsewhere}}]}
`

// A pipeline's meaning changes with everything that its decisions rest on, facts aside,
// and with nothing else.
func TestMeaning(t *testing.T) {
	name := func(text string) string {
		t.Helper()
		bundle, err := manifest.Parse(manifest.Source{Name: "m.yaml", Text: text}).Bundle()
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := bundle.Resolve("mine", nil)
		if err != nil {
			t.Fatal(err)
		}
		means, err := Of(bundle, resolved)
		if err != nil {
			t.Fatal(err)
		}
		return means
	}
	before := name(meaningManifest)
	for _, test := range []struct {
		name, old, with string
		changes         bool
	}{
		{"a policy of its files", `spec: {text: "read :- true."}`, `spec: {text: "read :- sKeyIs(\"a\")."}`, true},
		{"the mode of one", `spec: {text: "read :- true."}`, `spec: {mode: Audit, text: "read :- true."}`, true},
		{"the policy behind a taint", `"read :- true. update :- true."`, `"read :- true. update :- sKeyIs(\"a\")."`,
			true},
		{"the policy of a pipe", "cIsInternal()", `sKeyIs(\"a\")`, true},
		{"a task", "/bin/true], taint: {name: taint}, reads: [in]", "/bin/false], taint: {name: taint}, reads: [in]",
			true},
		{"its spec", "tasks: [one, two]", "revocation: immediate\n  tasks: [one, two]", true},
		{"a policy that asks for the policies of others", `spec: {text: "read :- true."}`,
			`spec: {text: "read :- cIdIs(I), hasPol(I, _P)."}`, true},
		{"another pipeline's policy", `sKeyIs(\"x\")`, `sKeyIs(\"y\")`, false},
		{"another pipeline's files", `"/theirs/**"`, `"/others/**"`, false},
		{"facts", "tuples: [[c]]", "tuples: [[d]]", false},
		{"its rollout", "tasks: [one, two]", "rollout: {paused: true}\n  tasks: [one, two]", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := strings.Replace(meaningManifest, test.old, test.with, 1)
			if changed == meaningManifest {
				t.Fatalf("the manifest has no %q", test.old)
			}
			if got := name(changed) != before; got != test.changes {
				t.Errorf("the meaning changes: %v, want %v", got, test.changes)
			}
		})
	}
	// For a policy that asks about the policies of others, every other one counts.
	asking := strings.Replace(meaningManifest, `spec: {text: "read :- true."}`,
		`spec: {text: "read :- cIdIs(I), hasPol(I, _P)."}`, 1)
	if name(asking) == name(strings.Replace(asking, `sKeyIs(\"x\")`, `sKeyIs(\"y\")`, 1)) {
		t.Error("a policy that may be asked for does not count")
	}
}
