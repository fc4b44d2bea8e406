// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// looksAt prints the errors with which the ways to look at each path end, a line for each.
const looksAt = `
import errno, os, sys
def error(act, *with_):
    try: act(*with_)
    except OSError as failure: return errno.errorcode[failure.errno]
    return "none"
for path in sys.argv[1:]:
    print(error(os.stat, path), error(os.lstat, path), error(os.readlink, path), error(os.open, path, os.O_RDONLY),
        error(os.open, path, os.O_RDONLY | os.O_DIRECTORY), error(os.open, path + "/", os.O_RDONLY),
        error(os.open, path + "/../x", os.O_RDONLY), error(os.open, path, os.O_WRONLY | os.O_CREAT, 0o600))
`

// looked runs looksAt as a user of its own. The parent of the last of the foreign directories is in
// its runtime, and it may read the directory given.
func looked(t *testing.T, waived plan.Protection, given string, foreign []string, paths ...string) []string {
	t.Helper()
	command := append([]string{"/usr/bin/python3", "-Ic", looksAt}, paths...)
	got := run(t, Spec{waived: waived,
		Foreign: func(path string) (bool, error) { return plan.Beneath(path, foreign...), nil },
		Spec: plan.Spec{Command: command, Confined: true, User: pipelineUser, WorkingDirectory: "/",
			Runtime:   runtimeOf(filepath.Dir(foreign[len(foreign)-1])),
			Perimeter: []plan.Directory{{Path: given, Rights: plan.Read}}}},
		&scripted{})
	lines := strings.Split(strings.TrimSpace(got.output), "\n")
	if got.err != nil || len(lines) != len(paths) {
		t.Fatalf("%v: %s", got.err, got.output)
	}
	return lines
}

// holding starts a process that is not the task's, and has the descriptor 5 open, and not 6.
func holding(t *testing.T) int {
	t.Helper()
	held, err := os.Open(os.DevNull)
	check(t, err)
	defer held.Close()
	process := exec.Command("/bin/sleep", "1000")
	process.ExtraFiles = []*os.File{held, held, held}
	process.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	return process.Process.Pid
}

// Whatever a task asks about what its user could not find, it gets the same answer whether there
// is something or not: names in a directory that is closed to it, and in one of another member;
// what another process has open; and what a link there leads to. Without the protection it does
// not.
func TestHiddenNames(t *testing.T) {
	needRoot(t)
	place := openGround(t)
	closed, foreign := filepath.Join(place, "closed"), filepath.Join(place, "foreign")
	within, shut := filepath.Join(place, "runtime", "foreign"), filepath.Join(place, "runtime", "closed")
	given := filepath.Join(place, "given")
	check(t, errors.Join(os.Mkdir(filepath.Dir(within), 0o755), os.Mkdir(given, 0o755)))
	for _, directory := range []string{closed, foreign, within, shut, given + "/closed"} {
		check(t, os.Mkdir(directory, 0o755))
		check(t, os.Mkdir(filepath.Join(directory, "inner"), 0o755))
		check(t, os.WriteFile(filepath.Join(directory, "file"), nil, 0o644))
		check(t, os.Symlink("/etc/passwd", filepath.Join(directory, "link")))
		check(t, os.Symlink("/nowhere", filepath.Join(directory, "lost")))
	}
	for _, directory := range []string{closed, shut, given + "/closed"} {
		check(t, os.Chmod(directory, 0o700))
	}
	process := holding(t)
	names := func(directory string) []string {
		return []string{directory + "/none", directory + "/file", directory + "/inner", directory + "/link",
			directory + "/lost", directory + "/inner/none", directory + "/inner/../file"}
	}
	for name, paths := range map[string][]string{
		"closed directory": names(closed), "closed directory in the runtime": names(shut),
		"closed directory in what it has been given": names(given + "/closed"),
		"another member": names(foreign), "another member in the runtime": names(within),
		"another process": {fmt.Sprintf("/proc/%d/fd/6", process), fmt.Sprintf("/proc/%d/fd/5", process),
			fmt.Sprintf("/proc/%d/task/%[1]d/fd/5", process)},
	} {
		t.Run(name, func(t *testing.T) {
			lines := looked(t, 0, given, []string{foreign, within}, paths...)
			for j, line := range lines {
				if line != lines[0] {
					t.Errorf("%s: %s; %s: %s", paths[j], line, paths[0], lines[0])
				}
			}
			without := looked(t, plan.HiddenNames, given, []string{foreign, within}, paths...)
			if without[0] == without[1] {
				t.Errorf("without the protection, %s is not told from %s: %s", paths[1], paths[0], without[0])
			}
		})
	}
}

// Where a user may search, names are what the kernel says.
func TestKnownNames(t *testing.T) {
	needRoot(t)
	place := openGround(t)
	check(t, os.WriteFile(filepath.Join(place, "file"), nil, 0o644))
	lines := looked(t, 0, "/usr/share", []string{"/usr/nowhere"},
		place+"/none", place+"/file", "/proc/self/fd/0", "/proc/self/fd/5000")
	for i, want := range []string{"ENOENT ENOENT ENOENT ENOENT", "EACCES EACCES EINVAL EACCES"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("%d: %s, want %s", i, lines[i], want)
		}
	}
	if !strings.HasPrefix(lines[3], "ENOENT") || strings.HasPrefix(lines[2], "ENOENT") {
		t.Errorf("its own descriptors: %s and %s", lines[2], lines[3])
	}
}

// asksNatively prints the errors of calls relative to the first directory that the task was given,
// which the kernel answers, a line for each path.
const asksNatively = `
import errno, os, sys
given = int(sys.argv[1])
def error(act, *with_, **how):
    try: act(*with_, **how)
    except OSError as failure: return errno.errorcode[failure.errno]
    return "none"
for path in sys.argv[2:]:
    print(error(os.open, path, os.O_RDONLY, dir_fd=given),
        error(os.open, path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=given),
        error(os.open, path, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=given), error(os.mkdir, path, dir_fd=given),
        error(os.unlink, path, dir_fd=given), error(os.rmdir, path, dir_fd=given),
        error(os.rename, path, "x", src_dir_fd=given, dst_dir_fd=given), error(os.symlink, "x", path, dir_fd=given))
`

// Calls relative to a directory that the task has been given go to the kernel, which takes an
// absolute path for what it is. In the directories of others it finds nothing.
func TestCoveredDirectories(t *testing.T) {
	needRoot(t)
	place := openGround(t)
	given, others := filepath.Join(place, "given"), filepath.Join(place, "others")
	for _, directory := range []string{given, others, filepath.Join(others, "inner")} {
		check(t, os.Mkdir(directory, 0o755))
	}
	check(t, os.WriteFile(filepath.Join(others, "file"), nil, 0o644))
	check(t, os.Symlink("/etc/passwd", filepath.Join(others, "link")))
	paths := []string{others + "/none", others + "/file", others + "/inner", others + "/link",
		given + "/../others/file", "../others/file", others + "/none/none", others + "/inner/none"}
	const beneath = 6 // from here on, the names are in another directory
	ask := func(waived plan.Protection, confined bool, user *plan.User) []string {
		command := append([]string{"/usr/bin/python3", "-Ic", asksNatively, fmt.Sprint(wire.FDCapability)}, paths...)
		got := run(t, Spec{waived: waived, Spec: plan.Spec{
			Command: command, Runtime: runtimeOf(), WorkingDirectory: "/", Confined: confined, User: user,
			Capabilities: []plan.Capability{{Prefix: "/given", Path: given}},
			Perimeter:    []plan.Directory{{Path: given, Rights: plan.Read}},
			Covered:      []string{others, place, place + "/gone"}}}, &scripted{})
		lines := strings.Split(strings.TrimSpace(got.output), "\n")
		if got.err != nil || len(lines) != len(paths) {
			t.Fatalf("%v: %s", got.err, got.output)
		}
		return lines
	}
	for name, confined := range map[string]bool{"confined": true, "baseline": false} {
		lines := ask(0, confined, pipelineUser)
		for i, line := range lines {
			missing := i / beneath * beneath
			if line != lines[missing] {
				t.Errorf("%s: %s: %s; %s: %s", name, paths[i], line, paths[missing], lines[missing])
			}
		}
		if without := ask(plan.HiddenNames, confined, pipelineUser); without[0] == without[1] {
			t.Errorf("%s: without the protection nothing is told: %s", name, without[0])
		}
	}
	if _, err := os.Stat(filepath.Join(others, "file")); err != nil {
		t.Errorf("the directory itself: %v", err)
	}
}
