// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"strings"
	"testing"

	"shai.dev/monitor/internal/manifest"
)

// What is learnt takes the place of the former Task among its manifests, and then nothing is
// left to learn.
func TestALearntTaskIsAManifest(t *testing.T) {
	const manifests = "testdata/input/learn/pipeline.yaml"
	text, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	base, err := manifest.Parse(manifest.Source{Name: manifests, Text: string(text)}).Bundle()
	if err != nil {
		t.Fatal(err)
	}
	learn := func(file string) (task, notes string) {
		said := execute(t, []string{"task", "learn", "diary", "worker", "-f", file, "--records",
			"testdata/input/learn/own.jsonl"}, "", "")
		var lines []string
		for line := range strings.Lines(said) {
			if note, found := strings.CutPrefix(line, "| "); found {
				notes += note
			} else {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, ""), notes
	}
	task, notes := learn(manifests)
	if !strings.Contains(notes, "reads, too: diaries\nwrites, too: notes\n") ||
		!strings.Contains(notes, "taint: owned") {
		t.Fatalf("the first time:\n%s", notes)
	}
	next, err := manifest.Parse(manifest.Source{Name: "learnt", Text: task}).Over(base).Bundle()
	if err != nil {
		t.Fatalf("%v:\n%s", err, task)
	}
	file := t.TempDir() + "/next.yaml"
	if err := os.WriteFile(file, next.Canonical(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, notes := learn(file)
	if again != task || notes != "no conduit of the pipeline: /etc/shadow\n" {
		t.Errorf("the second time:\n%s%s", again, notes)
	}
}
