// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"slices"
	"strings"
	"testing"

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
			m, _ := bareMonitor(t)
			applyBare(t, m, strings.Replace(bareManifest, "taint: {name: open}", test.taint, 1)+sealedManifest)
			directories, err := m.pipelines["bare"].tasks["collector"].readableView()
			if err != nil {
				t.Fatal(err)
			}
			var granted []string
			for _, directory := range directories {
				if directory.Rights != plan.List {
					granted = append(granted, directory.Path)
				}
			}
			if !slices.Contains(granted, m.view.ClassDirectory(classOf(t, m, "/open/1.txt"))) {
				t.Errorf("what is open to everybody is not among %v", granted)
			}
			if slices.Contains(granted, m.view.Path()) {
				t.Errorf("the whole view is granted: %v", granted)
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
