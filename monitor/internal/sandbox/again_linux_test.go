// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// againMarker says in which state a test runs again, in a process of its own.
const againMarker = "SHAI_TEST_AGAIN"

// again runs a test in another process, with the state in againMarker, and returns its
// output.
func again(t *testing.T, state string, attributes *syscall.SysProcAttr) string {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	command := exec.Command("/proc/self/exe", "-test.run=^"+name+"$")
	command.Env, command.SysProcAttr = append(os.Environ(), againMarker+"="+state), attributes
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", state, err, output)
	}
	return string(output)
}

// hideCgroups takes the file systems of cgroups from this process, which has mounts of its
// own.
func hideCgroups(t *testing.T) {
	t.Helper()
	check(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	check(t, err)
	for _, mount := range mounts {
		check(t, unix.Unmount(mount.Mountpoint, unix.MNT_DETACH))
	}
}
