// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A command that is given a named pipe ends: opening it would wait for a writer, which no signal ends.
func TestNamedPipesAreRefused(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"p.pol", "f.jsonl", "m.yaml", "p_test.yaml"} {
		if err := unix.Mkfifo(filepath.Join(directory, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rule := filepath.Join(directory, "rule", "r.pol")
	if err := os.Mkdir(filepath.Dir(rule), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rule, []byte("read :- true.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := func(name string) string { return filepath.Join(directory, name) }
	for _, words := range []string{
		"policy check " + pipe("p.pol"), "policy check " + pipe("m.yaml"), "policy lint " + pipe("p.pol"),
		"policy lint " + directory, "policy format " + pipe("p.pol"), "policy test " + pipe("p_test.yaml"),
		"policy eval " + pipe("p.pol"), "policy eval --facts " + pipe("f.jsonl") + " " + rule,
		"policy compare " + pipe("p.pol") + " " + rule,
		"explain -f " + pipe("m.yaml") + " --conduit /x --principal bob",
		"analyze -f " + directory, "apply -f " + pipe("m.yaml"),
		"analyze import " + pipe("m.yaml"), "report " + pipe("f.jsonl"),
	} {
		got := execute(t, strings.Fields(words), "/nowhere", "full")
		if !strings.Contains(got, "it is no regular file") || strings.HasSuffix(got, "exit 0\n") {
			t.Errorf("%s: %s", words, got)
		}
	}
}
