// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// A task without a user keeps running while policies change. A class that appears in the
// meantime was not decided on, so the view as a whole is never granted, even if the task
// may read all of it.
func TestATaskIsGrantedClassesAndNeverTheView(t *testing.T) {
	for _, test := range []struct{ name, taint string }{
		{"a part", "taint: {name: open}"},
		{"everything", "taint: {name: sealed}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := bare(t)
			p.apply(strings.Replace(pipelinetest.Bare, "taint: {name: open}", test.taint, 1) + sealedManifest)
			directories, err := p.tasks["collector"].readableView(false)
			if err != nil {
				t.Fatal(err)
			}
			var granted []string
			for _, directory := range directories {
				if directory.Rights != plan.List {
					granted = append(granted, directory.Path)
				}
			}
			open := p.services.state().ClassOf(p.id("/open/1.txt"))
			if !slices.Contains(granted, p.services.View.ClassDirectory(open)) {
				t.Errorf("what is open to everybody is not among %v", granted)
			}
			if slices.Contains(granted, p.services.View.Path()) {
				t.Errorf("the whole view is granted: %v", granted)
			}
		})
	}
}

// A task does not start without its directories, though nothing is decided in mode baseline.
func TestATaskNeedsItsDirectories(t *testing.T) {
	for _, mode := range []string{"shai", "baseline"} {
		t.Run(mode, func(t *testing.T) {
			f, a := drafting(t, "mode: shai", "mode: "+mode)
			confined := mode != "baseline"
			if _, err := a.task.perimeter(confined, a); err != nil {
				t.Fatal(err)
			}
			attic := filepath.Join(f.services.Options.Data, "attic")
			f.must(os.RemoveAll(attic))
			f.must(os.WriteFile(attic, nil, 0o644))
			if _, err := a.task.perimeter(confined, a); err == nil {
				t.Error("the task starts although a file is in the place of its directory")
			}
		})
	}
}

// TestFilesStayUnderOnePolicy: a file gets no name under another policy, also if the two are equal
// by the facts as they are: the next task could write it under one when it may be read under the
// other by more.
func TestFilesStayUnderOnePolicy(t *testing.T) {
	const policies = `
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: mine}
spec: {text: "read :- sKeyIs(\"carol\"). update :- true."}
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: shared}
spec: {text: "read :- sKeyIs(\"carol\"). read :- sKeyIs(K), \"friends/carol\" says friend(K). update :- true."}
`
	for other, moves := range map[string]bool{"mine": true, "shared": false} {
		p := bare(t)
		directories := ""
		for name, policy := range map[string]string{"one": "mine", "two": other} {
			directories += fmt.Sprintf("    - name: %s\n      kind: file\n      directory: true\n"+
				"      paths: [{path: /%s/**, policy: {name: %s}}]\n", name, name, policy)
		}
		p.apply(strings.NewReplacer("  taint: {name: open}\n  reads: [documents]",
			"  taint: {name: mine}\n  reads: [one, two]\n  writes: [one, two]",
			"    - name: web\n", directories+"    - name: web\n").Replace(pipelinetest.Bare) + policies)
		for _, mode := range []wire.Mode{wire.ModeShai, wire.ModeDynamic} {
			p.must(p.SwitchTo(mode))
			a := p.tasks["collector"].starts()
			a.asks = mode.IsDynamic()
			list, err := a.task.perimeter(true, a)
			p.must(err)
			written := 0
			for _, directory := range list {
				if directory.Rights&(plan.Write|plan.Names) == 0 {
					continue
				}
				written++
				if (directory.Rights&plan.Move != 0) != moves {
					t.Errorf("beside %s, mode %v: rights %#x in %s", other, mode, directory.Rights, directory.Path)
				}
			}
			if written != 2 {
				t.Errorf("%d directories: %v", written, list)
			}
		}
	}
}

// sealedManifest is a taint under which everything may be read and nothing shown.
const sealedManifest = `
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: sealed}
spec: {text: "update :- true."}
`
