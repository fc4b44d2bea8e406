// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// hierarchy is one of the kernel's hierarchies of cgroups.
type hierarchy struct {
	name       string // for messages
	fileSystem string
	controller string // of version 1, which has a hierarchy for each; "" for version 2
}

var version2 = hierarchy{name: "cgroups of version 2", fileSystem: "cgroup2"}

// version1Of returns the hierarchy of version 1 that a controller has.
func version1Of(controller string) hierarchy {
	name := "the controller " + controller + " of version 1"
	return hierarchy{name: name, fileSystem: "cgroup", controller: controller}
}

// own returns the directory of this process's cgroup in the hierarchy.
func (h hierarchy) own() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		// "number:controllers:name"; version 2 has the number 0 and no controllers.
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), h.controller) {
			return h.directory(fields[2])
		}
	}
	return "", fmt.Errorf("the kernel has not %s", h.name)
}

// directory returns the directory of a cgroup.
func (h hierarchy) directory(name string) (string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(h.fileSystem))
	if err != nil {
		return "", err
	}
	for _, mount := range mounts {
		below, err := filepath.Rel(mount.Root, name)
		isThis := h.controller == "" || slices.Contains(strings.Split(mount.VFSOptions, ","), h.controller)
		if isThis && err == nil && filepath.IsLocal(below) {
			return filepath.Join(mount.Mountpoint, below), nil
		}
	}
	return "", fmt.Errorf("no mounted file system has %s with %s", h.name, name)
}

// leafPrefix begins the name of the cgroup that a monitor makes for itself (see
// moveToLeaf).
const leafPrefix = "shai-monitor-"

// tasksCgroup returns the directory of version 2 in which tasks' cgroups are made: this
// process's own, or the one above if that is a leaf.
func tasksCgroup() (string, error) {
	own, err := version2.own()
	if err == nil && strings.HasPrefix(filepath.Base(own), leafPrefix) {
		own = filepath.Dir(own)
	}
	return own, err
}

// enabling keeps tasks that start at the same time from moving the monitor twice.
var enabling sync.Mutex

// enable gives the children of the cgroup in which tasks' are made a controller. A cgroup
// whose children have one may hold no processes itself, but at the root of the hierarchy:
// otherwise the children could not be entered. This process therefore moves into a
// child first, if it is the only one there.
func enable(controller, parent string) error {
	enabling.Lock()
	defer enabling.Unlock()
	if err := mayEnable(controller, parent); err != nil {
		return err
	}
	if mustLeave(parent) {
		return moveToLeaf(controller, parent)
	}
	if isListed(controller, subtreeFile(parent)) {
		return nil
	}
	return writeWord(subtreeFile(parent), "+"+controller)
}

func moveToLeaf(controller, parent string) error {
	monitor, err := monitorName(os.Getpid())
	if err != nil {
		return err
	}
	leaf := filepath.Join(parent, leafPrefix+monitor)
	if err := os.Mkdir(leaf, 0o755); err != nil { //nolint:gosec // as the kernel's own directories
		return err
	}
	// An earlier monitor may have left some enabled: the leaf could then not be entered, either.
	enabled, err := os.ReadFile(subtreeFile(parent))
	for _, left := range strings.Fields(string(enabled)) {
		err = errors.Join(err, writeWord(subtreeFile(parent), "-"+left))
	}
	if err == nil {
		err = enterCgroup(leaf)
	}
	if err == nil {
		err = writeWord(subtreeFile(parent), "+"+controller)
	}
	if err != nil {
		return errors.Join(err, enterCgroup(parent), unix.Rmdir(leaf))
	}
	return nil
}

// mustLeave reports whether this process is in a cgroup that may hold none.
func mustLeave(parent string) bool {
	own, err := version2.own()
	_, missing := os.Stat(filepath.Join(parent, "cgroup.type")) // the root has none
	return err == nil && own == parent && missing == nil
}

// mayEnable returns why enable cannot succeed, nil if it can or has. It changes nothing.
func mayEnable(controller, parent string) error {
	if !isListed(controller, filepath.Join(parent, "cgroup.controllers")) {
		return fmt.Errorf("the controller %s is not delegated to %s", controller, parent)
	}
	if err := mayWrite(subtreeFile(parent)); err != nil || !mustLeave(parent) {
		return err
	}
	processes, err := os.ReadFile(filepath.Join(parent, "cgroup.procs"))
	if others := slices.DeleteFunc(strings.Fields(string(processes)), func(pid string) bool {
		return pid == strconv.Itoa(os.Getpid())
	}); err == nil && len(others) > 0 {
		return fmt.Errorf("%d other processes are in %s", len(others), parent)
	}
	return err
}

func subtreeFile(cgroup string) string { return filepath.Join(cgroup, "cgroup.subtree_control") }

// isListed reports whether a file of a cgroup names a controller.
func isListed(controller, path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && slices.Contains(strings.Fields(string(text)), controller)
}
