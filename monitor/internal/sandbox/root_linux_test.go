// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// plainDirectory is for a test's session that gets a plain descriptor of the directory
// instead of a detached mount.
const plainDirectory plan.Protection = 1 << 31

// leavings are ways out of the one directory that a session may read. Each is stopped by
// each of the protections alone, and succeeds when all of them are off.
var leavings = []struct {
	try   string
	lines []plan.Protection
	errno unix.Errno
}{
	{"at ../secret/secret.txt", []plan.Protection{plainDirectory}, unix.ENOENT},
	{"at ../../../../../../../../../..$S/secret.txt", []plan.Protection{plainDirectory}, unix.ENOENT},
	{"at $S/secret.txt", []plan.Protection{plan.EmptyRoot}, unix.ENOENT},
	{"at $R/linked.txt", []plan.Protection{plan.EmptyRoot}, unix.ENOENT},
	{"at escape", []plan.Protection{plainDirectory, plan.EmptyRoot}, 0},
	{"at link", []plan.Protection{plainDirectory}, unix.ELOOP},
	{"at-write allowed.txt", []plan.Protection{plainDirectory, plan.PerimeterDomain}, 0},
	{"at-truncate allowed.txt", []plan.Protection{plainDirectory, plan.PathMediation}, 0},
	{"at-create new.txt", []plan.Protection{plainDirectory, plan.PerimeterDomain}, 0},
	{"at-stat ../secret/secret.txt", []plan.Protection{plan.PathMediation, plainDirectory}, 0},
}

// rootedWorld is a world in which a task that serves users holds one directory, as a
// session does.
func rootedWorld(t *testing.T, try string, waived plan.Protection) (Spec, *scripted) {
	t.Helper()
	g := newGround(t)
	spec := g.spec(t, try)
	spec.Serving, spec.Perimeter, spec.Capabilities = true, nil, nil
	spec.waived = waived &^ plainDirectory
	directory, err := mountOf(g.granted, documentAttributes)
	if waived&plainDirectory != 0 {
		directory, err = unix.Open(g.granted, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	check(t, err)
	file := os.NewFile(uintptr(directory), g.granted)
	t.Cleanup(func() { file.Close() })
	spec.Descriptors = map[int]*os.File{wire.FDKeyValue: file}
	return spec, g.decider()
}

// TestSessionsStayInTheirDirectories: beneath the directories that a session holds it
// opens what it likes, and nothing else, although nothing but its root, its filter and
// the mounts restrict it.
func TestSessionsStayInTheirDirectories(t *testing.T) {
	for _, leaving := range leavings {
		t.Run(leaving.try, func(t *testing.T) {
			var every plan.Protection
			for _, line := range leaving.lines {
				every |= line
			}
			for _, line := range leaving.lines {
				spec, decider := rootedWorld(t, leaving.try, every&^line)
				succeeded, errno, got := attempt(t, spec, decider)
				if succeeded || leaving.errno != 0 && errno != leaving.errno {
					t.Errorf("with protection %#x: succeeded %v, errno %v: %v %s", line, succeeded, errno, got.err, got.output)
				}
			}
			spec, decider := rootedWorld(t, leaving.try, every)
			if succeeded, errno, got := attempt(t, spec, decider); !succeeded {
				t.Errorf("without the protections: errno %v, %v %s", errno, got.err, got.output)
			}
		})
	}
	spec, decider := rootedWorld(t, "at allowed.txt", 0)
	if succeeded, errno, got := attempt(t, spec, decider); !succeeded || got.output != "allowed" {
		t.Errorf("in its directory: errno %v, %v %q", errno, got.err, got.output)
	}
	if len(decider.opens) != 0 {
		t.Errorf("the monitor was asked about %v", decider.opens)
	}
	for _, serving := range []bool{true, false} {
		spec, decider := rootedWorld(t, "fchdir", 0)
		spec.Serving = serving
		if succeeded, errno, got := attempt(t, spec, decider); succeeded == serving {
			t.Errorf("fchdir, serving %v: errno %v, %v %s", serving, errno, got.err, got.output)
		}
	}
}

// TestListing: a task with a root of its own lists directories of its runtime, and opens
// nothing by the descriptors that it lists them with. Other tasks do.
func TestListing(t *testing.T) {
	for _, serving := range []bool{true, false} {
		spec, decider := rootedWorld(t, "list $R linked.txt", plan.PathMediation&plan.PerimeterDomain)
		spec.Serving = serving
		succeeded, errno, got := attempt(t, spec, decider)
		if succeeded || errno != unix.EACCES || !strings.HasPrefix(got.output, "listed") {
			t.Errorf("serving %v: %v, errno %v, %v %s", serving, succeeded, errno, got.err, got.output)
		}
	}
}

// TestOwnRoot: the root of a task that serves users holds the files that the kernel needs
// to execute it, whatever names they have, and its working directory, which is empty.
func TestOwnRoot(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	script := filepath.Join(directory, "script")
	check(t, os.WriteFile(script, []byte("#!/bin/sh\npwd\necho $0\n"), 0o755))
	check(t, os.Symlink("script", filepath.Join(directory, "link")))
	for _, program := range []string{script, filepath.Join(directory, "link")} {
		spec := Spec{Spec: plan.Spec{
			Command: []string{program}, WorkingDirectory: directory, Confined: true, Serving: true,
			Runtime: runtimeOf(directory), Environment: []string{"PATH=/usr/bin:/bin"}}}
		got := run(t, spec, &scripted{})
		if got.err != nil || strings.TrimSpace(got.output) != directory+"\n"+program {
			t.Errorf("%s: %v %q", program, got.err, got.output)
		}
	}
}

// TestOwnRootCanBeSearched: tasks are other users than the monitor, whose umask may keep
// everything to itself. The task keeps that umask.
func TestOwnRootCanBeSearched(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	for _, serving := range []bool{true, false} {
		spec := Spec{Spec: plan.Spec{
			Command: []string{"/bin/sh", "-c", "umask"}, WorkingDirectory: "/usr", Confined: true,
			Serving: serving, User: pipelineUser, Runtime: runtimeOf()}}
		if got := run(t, spec, &scripted{}); got.err != nil || got.output != "0077\n" {
			t.Errorf("serving %v: %v %q", serving, got.err, got.output)
		}
	}
}
