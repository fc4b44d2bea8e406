// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A command that is given a file of many gigabytes refuses it, and has read no more of it than it may have.
// The files are sparse: they take no space.
func TestHugeFilesAreNotRead(t *testing.T) {
	const length, mayAllocate = 8 << 30, 256 << 20
	directory := t.TempDir()
	rule := filepath.Join(t.TempDir(), "r.pol")
	if err := os.WriteFile(rule, []byte("read :- true.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := func(name string) string { return filepath.Join(directory, name) }
	for _, name := range []string{"p.pol", "f.jsonl", "m.yaml", "p_test.yaml", "key.pem"} {
		if err := errors.Join(os.WriteFile(huge(name), nil, 0o600), os.Truncate(huge(name), length)); err != nil {
			t.Fatal(err)
		}
	}
	refused := regexp.MustCompile(`(more|longer|larger) than \d+ bytes`)
	for _, words := range []string{
		"policy check " + huge("p.pol"), "policy check " + huge("m.yaml"), "policy lint " + huge("p.pol"),
		"policy format " + huge("p.pol"), "policy test " + huge("p_test.yaml"), "policy eval " + huge("p.pol"),
		"policy eval --facts " + huge("f.jsonl") + " " + rule, "policy compare " + huge("p.pol") + " " + rule,
		"policy set /x private --principal a --principal-key " + huge("key.pem"),
		"explain -f " + huge("m.yaml") + " --conduit /x --principal bob", "apply -f " + huge("m.yaml"),
		"analyze import " + huge("f.jsonl"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := execute(t, strings.Fields(words), "/nowhere", "full")
		runtime.ReadMemStats(&after)
		if !refused.MatchString(got) || strings.HasSuffix(got, "exit 0\n") {
			t.Errorf("%s: %.300s", words, got)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > mayAllocate {
			t.Errorf("%s: %d bytes are allocated for it", words, allocated)
		}
	}
}
