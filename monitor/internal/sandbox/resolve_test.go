// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// folder is a directory that is both root and working directory. It counts what the walk
// asks for.
type folder struct {
	path           string
	roots, targets int
}

func (f *folder) open() (int, error) {
	return unix.Open(f.path, openPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func (f *folder) root() (int, error) {
	f.roots++
	return f.open()
}

func (f *folder) start(int) (int, error) { return f.open() }

func (*folder) mayKnow(int, bool, bool) error { return nil }

func (f *folder) target(link, _ int, _ string) (string, error) {
	f.targets++
	return readLink(link)
}

// TestWalkIsBounded: a task's path costs the monitor a bounded number of steps, however
// long the targets of its links are, and the root is opened once.
func TestWalkIsBounded(t *testing.T) {
	here := t.TempDir()
	check(t, os.Mkdir(filepath.Join(here, "d"), 0o700))
	check(t, os.WriteFile(filepath.Join(here, "file"), nil, 0o600))
	for i := range linksMax {
		back := strings.Repeat("d/../", unix.PathMax/5-10) // as long as the system permits
		check(t, os.Symlink(back+"link"+strconv.Itoa(i+1), filepath.Join(here, "link"+strconv.Itoa(i))))
	}
	tests := map[string]struct {
		path    string
		want    error
		targets int
	}{
		"up and down":      {strings.Repeat("d/../", 127) + "file", nil, 0},
		"from the root":    {"/" + strings.Repeat("d/../", 127) + "file", nil, 0},
		"4 KB up and down": {strings.Repeat("d/../", 818) + "file", unix.ENAMETOOLONG, 0},
		"4 KB of dots":     {strings.Repeat("./", 2045) + "file", unix.ENAMETOOLONG, 0},
		"long links":       {"link0", unix.ENAMETOOLONG, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := &folder{path: here}
			file, err := resolve(from, test.path, resolution{directory: unix.AT_FDCWD, follow: true})
			if err == nil {
				file.close()
			}
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if from.roots > 1 || from.targets != test.targets {
				t.Errorf("the walk opened the root %d times and followed %d links", from.roots, from.targets)
			}
		})
	}
}

func BenchmarkWalkUpAndDown(b *testing.B) {
	here := b.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(here, "d"), 0o700),
		os.WriteFile(filepath.Join(here, "file"), nil, 0o600)); err != nil {
		b.Fatal(err)
	}
	path := strings.Repeat("d/../", 818) + "file"
	for b.Loop() {
		if file, err := resolve(&folder{path: here}, path, resolution{follow: true}); err == nil {
			file.close()
		}
	}
}
