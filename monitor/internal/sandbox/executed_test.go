// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestExecuted: the files that the kernel reads to execute a program are those that it
// names, at each step by their real paths.
func TestExecuted(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	shell, err := filepath.EvalSymlinks("/bin/sh")
	check(t, err)
	ofShell, err := Executed("/bin/sh")
	if err != nil || len(ofShell) != 2 || ofShell[0] != shell || !strings.Contains(ofShell[1], "ld-") {
		t.Fatalf("/bin/sh executes %q, %v", ofShell, err)
	}
	path := func(name string) string { return filepath.Join(directory, name) }
	for name, text := range map[string]string{
		"script": "#! /bin/sh -e\nexit 0\n", "unended": "#!\t/bin/sh", "nested": "#!" + path("script") + "\n",
		"loop": "#!" + path("loop") + "\n", "relative": "#!sh\n", "nobody": "#!\n/bin/sh", "text": "exit 0\n",
		"empty": "", "absent": "#!" + path("nonexistent") + "\n",
	} {
		check(t, os.WriteFile(path(name), []byte(text), 0o755))
	}
	check(t, os.Symlink("script", path("link")))
	check(t, unix.Mkfifo(path("pipe"), 0o755))
	for name, want := range map[string][]string{
		"script": {path("script")}, "link": {path("script")}, "unended": {path("unended")},
		"nested": {path("nested"), path("script")},
	} {
		if got, err := Executed(path(name)); err != nil || !slices.Equal(got, slices.Concat(want, ofShell)) {
			t.Errorf("%s executes %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"loop", "relative", "nobody", "text", "empty", "absent", "nonexistent", "pipe", "."} {
		if got, err := Executed(path(name)); err == nil || !strings.Contains(err.Error(), "execute "+path(name)) {
			t.Errorf("%s executes %q, %v", name, got, err)
		}
	}
}
