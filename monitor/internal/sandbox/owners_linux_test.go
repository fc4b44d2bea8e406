// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// ofTask is the user of one of the tasks whose files belong to pipelineUser.
var ofTask = &plan.User{ID: 70125, Group: 70123, Files: 70123}

// ownedGround is a directory of the pipeline's user, with a file that only this user may read, and
// a file of somebody else.
func ownedGround(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(openGround(t), "owned")
	if err := CanMapOwners([]string{filepath.Dir(directory)}); err != nil {
		t.Skipf("tasks cannot have users of their own here: %v", err)
	}
	check(t, os.Mkdir(directory, 0o770))
	check(t, os.Chown(directory, int(ofTask.Files), int(ofTask.Group)))
	check(t, os.Chmod(directory, 0o770|os.ModeSetgid))
	for name, owner := range map[string]int{"private": int(ofTask.Files), "foreign": 70999} {
		path := filepath.Join(directory, name)
		check(t, os.WriteFile(path, []byte("the text\n"), 0o600))
		check(t, os.Chown(path, owner, owner))
	}
	return directory
}

// Tasks of a pipeline are different users, and own each other's files all the same: what one
// makes that only its user may read, the other reads. Files of others stay closed.
func TestTasksOwnThePipelinesFiles(t *testing.T) {
	needRoot(t)
	const program = `
import os, sys
path = lambda name: sys.argv[1] + "/" + name
print(open(path("private")).read(), end="")
os.close(os.open(path("made"), os.O_WRONLY | os.O_CREAT, 0o600))
print(os.getuid())
try:
    open(path("foreign"))
    print("foreign")
except PermissionError:
    pass
`
	for name, confined := range map[string]bool{"confined": true, "baseline": false} {
		t.Run(name, func(t *testing.T) {
			directory := ownedGround(t)
			spec := Spec{Spec: plan.Spec{Command: []string{"/usr/bin/python3", "-Ic", program, directory},
				Runtime: runtimeOf(), WorkingDirectory: "/", Confined: confined, User: ofTask, Owned: []string{directory},
				Perimeter: []plan.Directory{{Path: directory, Rights: plan.Read | plan.Write}}}}
			got := run(t, spec, &scripted{open: allowBeneath(directory)})
			if want := "the text\n70125\n"; got.err != nil || got.output != want {
				t.Errorf("%v: %q, want %q", got.err, got.output, want)
			}
			info, err := os.Stat(filepath.Join(directory, "made"))
			if err != nil {
				t.Fatal(err)
			}
			if stat := info.Sys().(*syscall.Stat_t); stat.Uid != ofTask.Files || stat.Gid != ofTask.Group ||
				info.Mode().Perm() != 0o600 {
				t.Errorf("what the task made is %v of user %d and group %d", info.Mode(), stat.Uid, stat.Gid)
			}
			spec.waived = plan.MappedOwners
			got = run(t, spec, &scripted{open: allowBeneath(directory)})
			if got.err == nil || strings.Contains(got.output, "the text") {
				t.Errorf("without mounts of its own the other user reads the file, too: %s", got.output)
			}
		})
	}
}

// The mounts of a task are the task's: nobody else sees other owners, and none stays.
func TestMountsWithOtherOwnersEndWithTheTask(t *testing.T) {
	needRoot(t)
	directory := ownedGround(t)
	before, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	got := run(t, Spec{Spec: plan.Spec{Command: []string{"/bin/stat", "-c", "%u", directory + "/private"},
		WorkingDirectory: "/", User: ofTask, Owned: []string{directory}}}, &scripted{})
	if got.err != nil || got.output != "70125\n" {
		t.Errorf("the task sees owner %q: %v", got.output, got.err)
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	if strings.Contains(string(after), directory) && !strings.Contains(string(before), directory) {
		t.Errorf("a mount of a task has stayed:\n%s", after)
	}
}

// A directory may be beneath another one, as the view would be if the state were in the data.
func TestOwnedDirectoryBeneathAnother(t *testing.T) {
	needRoot(t)
	directory := ownedGround(t)
	inner := filepath.Join(directory, "inner")
	check(t, os.Mkdir(inner, 0o700))
	check(t, os.Chown(inner, int(ofTask.Files), int(ofTask.Group)))
	got := run(t, Spec{Spec: plan.Spec{Command: []string{"/bin/stat", "-c", "%u", directory, inner},
		WorkingDirectory: "/", User: ofTask, Owned: []string{directory, inner}}}, &scripted{})
	if got.err != nil || got.output != "70125\n70125\n" {
		t.Errorf("the task sees the owners %q: %v", got.output, got.err)
	}
}

// A directory that cannot be mapped keeps the task from starting: its files would be another's.
func TestDirectoryThatCannotBeMapped(t *testing.T) {
	needRoot(t)
	ownedGround(t)
	err := CanMapOwners([]string{"/proc/self/fdinfo"})
	if err == nil || !strings.Contains(err.Error(), "/proc/self/fdinfo") {
		t.Errorf("%v", err)
	}
	spec := Spec{Spec: plan.Spec{Command: []string{"/bin/true"}, WorkingDirectory: "/",
		User: ofTask, Owned: []string{"/proc/self/fdinfo"}}}
	_, err = newBackend(t).Start(t.Context(), spec, &scripted{})
	if err == nil || !strings.Contains(err.Error(), "id-mapped mounts") {
		t.Errorf("the task starts, or does not say why not: %v", err)
	}
}
