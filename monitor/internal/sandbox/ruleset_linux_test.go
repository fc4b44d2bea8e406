// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/wire"
)

// TestRuleset: a worker that restricts itself to a prepared ruleset reads what
// it grants and nothing else of the task's perimeter, but keeps what it may
// write, and renames between directories (trap 7).
func TestRuleset(t *testing.T) {
	tests := map[string]struct {
		try         string
		directories func(g ground) []Directory
		want        bool
	}{
		"granted": {"openat-capability allowed.txt",
			func(g ground) []Directory { return []Directory{{g.granted, Read}} }, true},
		"not granted": {"openat-capability allowed.txt",
			func(g ground) []Directory { return []Directory{{g.written, Read}} }, false},
		"nothing": {"openat-capability allowed.txt", func(ground) []Directory { return nil }, false},
		"write":   {"create-capability new.txt", func(ground) []Directory { return nil }, true},
		"rename": {"renameat-capability old.txt other/new.txt",
			func(g ground) []Directory { return []Directory{{g.written, Read | Write}} }, true},
		"rename alone": {"renameat-capability old.txt other/new.txt", func(ground) []Directory { return nil }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			check(t, os.Mkdir(filepath.Join(g.written, "other"), 0o755))
			ruleset, err := New().PrepareRuleset(test.directories(g))
			check(t, err)
			defer ruleset.File.Close()
			spec := g.spec(t, "restricted "+test.try)
			spec.Descriptors = map[int]*os.File{wire.FDKeyValue: ruleset.File}
			if succeeded, errno, got := attempt(t, spec, g.decider()); succeeded != test.want {
				t.Errorf("succeeded %v, errno %v: %v %s", succeeded, errno, got.err, got.output)
			}
		})
	}
}

// TestFilesStayInUnreadableDirectories: what a task may write and not read it cannot give
// another name in a directory of another policy.
func TestFilesStayInUnreadableDirectories(t *testing.T) {
	for _, test := range []struct {
		rights Rights
		want   bool
	}{{Read | Write, true}, {Write, false}} {
		for _, try := range []string{"renameat-capability old.txt ../other/new.txt",
			"linkat-capability ../written/old.txt ../other/new.txt"} {
			t.Run(fmt.Sprint(test.rights, try), func(t *testing.T) {
				g := newGround(t)
				other := filepath.Join(filepath.Dir(g.written), "other")
				check(t, os.Mkdir(other, 0o755))
				spec := g.spec(t, try)
				spec.Perimeter = []Directory{{g.written, test.rights}, {other, test.rights}}
				succeeded, errno, got := attempt(t, spec, g.decider())
				if succeeded != test.want || !succeeded && errno != unix.EXDEV {
					t.Errorf("succeeded %v, errno %v: %v %s", succeeded, errno, got.err, got.output)
				}
			})
		}
	}
}

// TestManyDirectories: a session's capability set has about a hundred classes.
func TestManyDirectories(t *testing.T) {
	leakFree(t, func(t *testing.T) {
		root := t.TempDir()
		var directories []Directory
		for i := range 110 {
			path := filepath.Join(root, fmt.Sprint(i))
			check(t, os.Mkdir(path, 0o700))
			directories = append(directories, Directory{path, Read})
		}
		ruleset, err := New().PrepareRuleset(directories)
		check(t, err)
		check(t, ruleset.File.Close())
		if _, err := New().PrepareRuleset(append(directories, Directory{root + "/missing", Read})); err == nil {
			t.Error("a missing directory is accepted")
		}
	})
}

func BenchmarkPrepareRuleset110(b *testing.B) {
	root := b.TempDir()
	var directories []Directory
	for i := range 110 {
		path := filepath.Join(root, fmt.Sprint(i))
		if err := os.Mkdir(path, 0o700); err != nil {
			b.Fatal(err)
		}
		directories = append(directories, Directory{path, Read})
	}
	for b.Loop() {
		ruleset, err := New().PrepareRuleset(directories)
		if err != nil {
			b.Fatal(err)
		}
		ruleset.File.Close()
	}
}

// TestProbe: this machine runs the tests above, so it reports full enforcement.
func TestProbe(t *testing.T) {
	report := New().Probe()
	t.Logf("%+v", report)
	if report.Enforcement != "full" {
		t.Errorf("enforcement is %q on a machine that passes the attacks", report.Enforcement)
	}
	if !slices.ContainsFunc(report.Features, func(feature Feature) bool {
		return feature.Name == "seccomp filters" && strings.Contains(feature.Effect, "mode baseline needs them")
	}) {
		t.Error("nothing says what mode baseline needs")
	}
	if actionAvailable(0x00420000) {
		t.Error("an answer that no kernel knows is available")
	}
}
