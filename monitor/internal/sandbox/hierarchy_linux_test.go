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
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// delegated makes a cgroup of version 2 that has a controller, as a service has that
// systemd delegates its cgroup to.
func delegated(t *testing.T) (directory, controller string) {
	t.Helper()
	needRoot(t)
	parent, err := tasksCgroup()
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	check(t, err)
	controllers := strings.Fields(string(text))
	if len(controllers) == 0 {
		t.Skipf("%s has no controllers", parent)
	}
	controller = controllers[0] // any: what pids is needed for is the same for all
	if !isListed(controller, subtreeFile(parent)) {
		if err := writeWord(subtreeFile(parent), "+"+controller); errors.Is(err, unix.EBUSY) {
			t.Skipf("%s has processes: %v", parent, err)
		} else {
			check(t, err)
		}
		// A test that runs beside this one may need it still.
		t.Cleanup(func() { _ = writeWord(subtreeFile(parent), "-"+controller) })
	}
	directory, err = os.MkdirTemp(parent, "shai-test-")
	check(t, err)
	t.Cleanup(func() {
		leaves, _ := filepath.Glob(filepath.Join(directory, "shai-*"))
		for _, leaf := range leaves {
			check(t, os.Remove(leaf))
		}
		check(t, os.Remove(directory))
	})
	return directory, controller
}

// The monitor gives tasks' cgroups a controller: it moves out of its own cgroup, which may
// hold no process then, into a leaf beside those of the tasks. It stays if others are there.
func TestMonitorMovesToALeaf(t *testing.T) {
	if state := os.Getenv(againMarker); state != "" {
		enableAgain(t, state)
		return
	}
	for name, test := range map[string]struct {
		company bool
		want    string
	}{
		"alone": {false, "<nil> <nil> true, in a leaf true, tasks' parent is the same true, a child has it true"},
		"in company": {true, "1 other processes are in DIR 1 other processes are in DIR false, in a leaf false, " +
			"tasks' parent is the same true, a child has it false"},
	} {
		t.Run(name, func(t *testing.T) {
			directory, controller := delegated(t)
			cgroup, err := os.Open(directory)
			check(t, err)
			defer cgroup.Close()
			attributes := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
			if test.company {
				other := exec.Command("/bin/sleep", "1000")
				other.SysProcAttr = attributes
				check(t, other.Start())
				defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
			}
			output := again(t, controller, attributes)
			if want := strings.ReplaceAll(test.want, "DIR", directory); !strings.Contains(output, want) {
				t.Errorf("want %q in\n%s", want, output)
			}
		})
	}
}

// enableAgain runs in the delegated cgroup.
func enableAgain(t *testing.T, controller string) {
	t.Helper()
	parent, err := tasksCgroup()
	check(t, err)
	may := mayEnable(controller, parent)
	first := enable(controller, parent)
	second := enable(controller, parent)
	own, err := version2.own()
	check(t, err)
	after, err := tasksCgroup()
	check(t, err)
	child, err := makeCgroupIn(after)
	check(t, err)
	has := isListed(controller, filepath.Join(child, "cgroup.controllers"))
	check(t, os.Remove(child))
	fmt.Printf("%v %v %v, in a leaf %v, tasks' parent is the same %v, a child has it %v\n", may, first, second == nil,
		own != parent, after == parent, has)
}
