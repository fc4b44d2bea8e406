// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be read in a directory is a finding: the other files are examined all the same.
func TestLintGoesOnPastWhatCannotBeRead(t *testing.T) {
	directory := t.TempDir()
	text := []byte("policy typo(owner) { read :- sKeyls(owner). }\n")
	if err := os.WriteFile(filepath.Join(directory, "typo.pol"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone.pol", "gone.yaml"} {
		if err := os.Symlink("nowhere", filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop.pol", filepath.Join(directory, "loop.pol")); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(execute(t, []string{"policy", "lint", directory}, "/nowhere", "full"), directory, "D")
	for _, want := range []string{
		"D/gone.pol: error: the symbolic link leads to no file (unreadable-file)\n" +
			"      = correct the link, or remove it\n",
		"D/gone.yaml: error: the symbolic link leads to no file (unreadable-file)\n",
		"D/loop.pol: error: the file cannot be read: ",
		"D/typo.pol:1:30: error: unknown predicate `sKeyls`",
		"4 errors and 0 warnings in 1 policy of 4 files\nexit 1\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	got = execute(t, []string{"policy", "lint", filepath.Join(directory, "gone.pol")}, "/nowhere", "full")
	if !strings.Contains(got, "gone.pol: no such file or directory\nexit 1\n") {
		t.Errorf("a link that is named: %s", got)
	}
}

// shai policy check goes on, too.
func TestCheckGoesOnPastWhatCannotBeRead(t *testing.T) {
	directory := t.TempDir()
	text := []byte("policy typo(owner) { read :- sKeyls(owner). }\n")
	if err := os.WriteFile(filepath.Join(directory, "typo.pol"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(directory, "gone.pol")); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(execute(t, []string{"policy", "check", directory}, "/nowhere", "full"), directory, "D")
	for _, want := range []string{"D/gone.pol: the symbolic link leads to no file\n      = correct the link, or remove it\n",
		"D/typo.pol:1:30: unknown predicate `sKeyls`", "2 errors in 2 files\nexit 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
