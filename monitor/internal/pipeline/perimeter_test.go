// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/sandbox/plan"
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

// sealedManifest is a taint under which everything may be read and nothing shown.
const sealedManifest = `
---
apiVersion: shai.dev/v1alpha1
kind: Policy
metadata: {name: sealed}
spec: {text: "update :- true."}
`
