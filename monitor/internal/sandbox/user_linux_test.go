// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// pipelineUser is a user that does not exist.
var pipelineUser = &plan.User{ID: 70123, Group: 70123}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can start tasks as other users")
	}
}

// statusOf returns the kernel's status of a task in a mode, by field.
func statusOf(t *testing.T, spec Spec) map[string]string {
	t.Helper()
	spec.Command, spec.Runtime, spec.WorkingDirectory = []string{"/bin/cat", "/proc/self/status"}, runtimeOf(), "/"
	got := run(t, spec, &scripted{})
	if got.err != nil {
		t.Fatalf("%v: %s", got.err, got.output)
	}
	fields := map[string]string{}
	for line := range strings.Lines(got.output) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

// joinGroup puts this process into one supplementary group, until the test ends.
func joinGroup(t *testing.T, group int) {
	t.Helper()
	before, err := syscall.Getgroups()
	if err == nil {
		err = syscall.Setgroups([]int{group})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setgroups(before); err != nil {
			t.Error(err)
		}
	})
}

// leaveCapabilities lets the processes that this goroutine starts inherit capabilities,
// until the test ends.
func leaveCapabilities(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := capabilityHeader
	var before [2]unix.CapUserData
	check(t, unix.Capget(&header, &before[0]))
	inherited := before
	for i := range inherited {
		inherited[i].Inheritable = inherited[i].Permitted
	}
	check(t, unix.Capset(&header, &inherited[0]))
	t.Cleanup(func() {
		check(t, unix.Capset(&header, &before[0]))
		runtime.UnlockOSThread()
	})
}

// A task is the user that it is given, is in no other group, and can get privileges by
// nothing that it executes.
func TestTasksHaveNoPrivileges(t *testing.T) {
	needRoot(t)
	joinGroup(t, 70124)
	const none = "0000000000000000"
	want := map[string]string{
		"Uid": "70123 70123 70123 70123", "Gid": "70123 70123 70123 70123", "Groups": "", "NoNewPrivs": "1",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
	}
	for name, confined := range map[string]bool{"confined": true, "baseline": false} {
		t.Run(name, func(t *testing.T) {
			leaveCapabilities(t)
			spec := Spec{Spec: plan.Spec{Confined: confined, User: pipelineUser}}
			got := statusOf(t, spec)
			for field, value := range want {
				if got[field] != value {
					t.Errorf("%s is %q, want %q", field, got[field], value)
				}
			}
			spec.waived = plan.NoPrivileges
			twin := statusOf(t, spec)
			if twin["Uid"] != "0 0 0 0" || twin["Groups"] != "70124" || twin["CapEff"] == none ||
				twin["CapInh"] == none {
				t.Errorf("without the protection it is user %s in groups %q with %s, %s: nothing was taken away",
					twin["Uid"], twin["Groups"], twin["CapEff"], twin["CapInh"])
			}
			spec.User, spec.waived = nil, 0
			if own := statusOf(t, spec); own["CapEff"] != none || own["CapInh"] != none || own["CapBnd"] != none {
				t.Errorf("as the monitor's user it has capabilities: %s, %s, %s", own["CapEff"], own["CapInh"], own["CapBnd"])
			}
		})
	}
}

// Nothing that a task executes as root, or with another user, gives capabilities back.
func TestSecurebitsAreLocked(t *testing.T) {
	needRoot(t)
	for waived, want := range map[plan.Protection]string{
		0: "noroot,noroot_locked,no_setuid_fixup_locked,keep_caps_locked", plan.NoPrivileges: "[none]",
	} {
		got := run(t, Spec{Spec: plan.Spec{
			Command: []string{"/usr/bin/setpriv", "--dump"}, WorkingDirectory: "/", User: pipelineUser},
			waived: waived}, &scripted{})
		if got.err != nil || !strings.Contains(got.output, "Securebits: "+want) {
			t.Errorf("with protections %#x off: %v, %s; want securebits %s", waived, got.err, got.output, want)
		}
	}
}

// In a user namespace of its own a task would have every capability.
func TestTasksGetNoNamespaces(t *testing.T) {
	needRoot(t)
	unshare := func(waived plan.Protection) outcome {
		return run(t, Spec{Spec: plan.Spec{
			Command: []string{"/usr/bin/unshare", "-Ur", "/bin/echo", "in it"}, WorkingDirectory: "/",
			User: pipelineUser}, waived: waived}, &scripted{})
	}
	if got := unshare(plan.SyscallFilter); got.err != nil {
		t.Skipf("this kernel gives nobody a user namespace: %s", got.output)
	}
	if got := unshare(0); got.err == nil || !strings.Contains(got.output, "not permitted") {
		t.Errorf("a task in mode baseline has a user namespace: %v: %s", got.err, got.output)
	}
	twin := run(t, Spec{Spec: plan.Spec{
		Command: []string{"/bin/sh", "-c", "echo forked | cat"}, WorkingDirectory: "/",
		User: pipelineUser}}, &scripted{})
	if twin.err != nil || twin.output != "forked\n" {
		t.Errorf("a process of the same namespaces: %v: %s", twin.err, twin.output)
	}
}

// The monitor opens for a task only files that the task's user may open: a runtime does
// not make private files public.
func TestFilesOfOthers(t *testing.T) {
	needRoot(t)
	root := filepath.Join(openGround(t), "runtime")
	for name, made := range map[string]struct {
		mode, directory os.FileMode
		group           int
	}{
		"everybody/text": {0o644, 0o755, 0}, "group/text": {0o640, 0o755, 70123},
		"closed-group/text": {0o640, 0o750, 70123},
		"owner/text":        {0o600, 0o755, 0}, "other-group/text": {0o640, 0o755, 0},
		"private/text": {0o644, 0o700, 0},
	} {
		path := filepath.Join(root, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte("the text"), 0o600))
		check(t, os.Chmod(path, made.mode))
		check(t, os.Chmod(filepath.Dir(path), made.directory))
		check(t, os.Chown(path, 0, made.group))
		check(t, os.Chown(filepath.Dir(path), 0, made.group))
	}
	for path, readable := range map[string]bool{
		root + "/everybody/text": true, root + "/group/text": true, root + "/closed-group/text": true,
		root + "/owner/text": false, root + "/other-group/text": false, root + "/private/text": false,
		"/etc/passwd": true, "/etc/shadow": false,
	} {
		for mode, confined := range map[string]bool{"confined": true, "baseline": false} {
			t.Run(mode+" "+strings.TrimPrefix(path, root), func(t *testing.T) {
				spec := Spec{Spec: plan.Spec{Command: []string{"/bin/cat", path},
					Runtime:          runtimeOf(root, "/etc/passwd", "/etc/shadow"),
					WorkingDirectory: "/", Confined: confined, User: pipelineUser}}
				if got := run(t, spec, &scripted{}); (got.err == nil) != readable {
					t.Errorf("readable %v, want %v: %s", got.err == nil, readable, got.output)
				}
				spec.waived = plan.NoPrivileges
				spec.User = nil
				if got := run(t, spec, &scripted{}); got.err != nil {
					t.Errorf("the superuser cannot read it either: %s", got.output)
				}
			})
		}
	}
}

// A file of the kernel shows as much as the capabilities allow with which it was opened:
// what the monitor opens for a task has none.
func TestOpenedFilesHaveNoCapabilities(t *testing.T) {
	needRoot(t)
	const file = "/proc/iomem" // addresses are 0 without CAP_SYS_ADMIN
	spec := Spec{Spec: plan.Spec{
		Command: []string{"/bin/cat", file}, Runtime: runtimeOf(file), WorkingDirectory: "/",
		Confined: true}}
	hasAddresses := func() bool {
		got := run(t, spec, &scripted{})
		if got.err != nil || got.output == "" {
			t.Fatalf("%v: %s", got.err, got.output)
		}
		return strings.ContainsAny(addressesOf(got.output), "123456789abcdef")
	}
	if !hasAddresses() {
		t.Skip("the kernel does not even show the superuser its addresses")
	}
	spec.User = pipelineUser
	if hasAddresses() {
		t.Error("the task reads the addresses of the physical memory")
	}
}

// addressesOf is the first column of /proc/iomem.
func addressesOf(text string) string {
	var addresses strings.Builder
	for line := range strings.Lines(text) {
		column, _, _ := strings.Cut(line, " : ")
		addresses.WriteString(column)
	}
	return addresses.String()
}

// A task owns the files that it makes through the monitor, and so can open them natively
// later.
func TestMadeFilesAreTheTasks(t *testing.T) {
	needRoot(t)
	directory := openGround(t)
	for name, owner := range map[string]int{"own": 70123, "foreign": 0} {
		place := filepath.Join(directory, name)
		check(t, os.Mkdir(place, 0o755))
		check(t, os.Chown(place, owner, 0))
		path := filepath.Join(place, "new")
		got := run(t, Spec{Spec: plan.Spec{
			Command: []string{"/bin/cp", "/etc/passwd", path}, Runtime: runtimeOf("/etc/passwd"),
			WorkingDirectory: "/",
			Confined:         true, User: pipelineUser}}, &scripted{open: allowBeneath(place)})
		info, err := os.Stat(path)
		if (err == nil) != (owner != 0) {
			t.Errorf("in a directory of user %d: %v: %v %s", owner, err, got.err, got.output)
		}
		if err == nil && !isOwnedBy(info, pipelineUser) {
			t.Errorf("the file is %+v, want user %d", info.Sys(), pipelineUser.ID)
		}
	}
}

// A program in a directory that only the superuser may search is executed all the same:
// the administrator has put it there.
func TestProgramInAPrivateDirectory(t *testing.T) {
	needRoot(t)
	directory := filepath.Join(openGround(t), "private")
	check(t, os.MkdirAll(filepath.Join(directory, "image"), 0o755))
	check(t, os.Chmod(directory, 0o700))
	text, err := os.ReadFile("/bin/echo")
	check(t, err)
	program := filepath.Join(directory, "image", "echo")
	check(t, os.WriteFile(program, text, 0o755))
	got := run(t, Spec{Spec: plan.Spec{
		Command: []string{program, "begun"}, Runtime: runtimeOf(filepath.Dir(program)),
		WorkingDirectory: "/",
		Confined:         true, User: pipelineUser}}, &scripted{})
	if got.err != nil || got.output != "begun\n" {
		t.Errorf("%v: %s", got.err, got.output)
	}
}

// openGround is a directory that every user may search.
func openGround(t *testing.T) string {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for path := directory; path != filepath.Clean(os.TempDir()) && path != "/"; path = filepath.Dir(path) {
		check(t, os.Chmod(path, 0o755))
	}
	return directory
}

func isOwnedBy(info os.FileInfo, user *plan.User) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == user.ID && stat.Gid == user.Group
}
