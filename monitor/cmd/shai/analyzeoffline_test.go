// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page and the drawing of manifests show what is granted, what is blocked and by what.
func TestFlowsOfManifestsAreDrawn(t *testing.T) {
	directory := t.TempDir()
	html, svg := filepath.Join(directory, "flows.html"), filepath.Join(directory, "flows.svg")
	said := execute(t, []string{"analyze", "-f", "testdata/input/offline", "--html", html, "--svg", svg}, "", "")
	if strings.Contains(said, "exit") {
		t.Fatal(said)
	}
	for file, parts := range map[string][]string{
		html: {"What the policies of diary allow", "4 of 9", `class="edge blocked"`, "policy closed: add",
			"one counts as there for each path and user"},
		svg: {"4 of 9", `class="edge open"`, `class="edge partial"`, ">collector<"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q:\n%s", filepath.Base(file), part, said)
			}
		}
	}
}
