// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A command that is given a named pipe ends: opening it would wait for a writer, which no signal ends.
func TestNamedPipesAreRefused(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"p.pol", "f.jsonl", "m.yaml", "p_test.yaml", "own.pem"} {
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
		"analyze shard " + pipe("f.jsonl") + " 1/2 " + pipe("result"),
		"audit verify " + directory + " --audit-key " + pipe("f.jsonl"),
		"task learn a b -f " + rule + " --records " + pipe("f.jsonl"),
		"status --server 127.0.0.1:1 --certificate " + pipe("p.pol") + " --key " + rule + " --server-ca " + rule,
		"analyze worker 1 --of 2 --connect 127.0.0.1:1 --identity " + directory,
		"analyze import " + pipe("m.yaml"), "report " + pipe("f.jsonl"),
	} {
		got := execute(t, strings.Fields(words), "/nowhere", "full")
		if !strings.Contains(got, "it is no regular file") || strings.HasSuffix(got, "exit 0\n") {
			t.Errorf("%s: %s", words, got)
		}
	}
}

// Records are read whole, so a file of gigabytes is refused.
func TestRecordsOfATaskAreLimited(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "run.json")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<30)); err != nil {
		t.Fatal(err)
	}
	got := execute(t, []string{"task", "learn", "a", "b", "-f", directory, "--records", path}, "/nowhere", "full")
	if !strings.Contains(got, "it is too long: it has more than") || !strings.HasSuffix(got, "exit 1\n") {
		t.Error(got)
	}
}
