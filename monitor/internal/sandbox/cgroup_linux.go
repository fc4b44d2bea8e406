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
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// A task's cgroup is a child of the monitor's own, on version 2 of cgroups, without
// controllers. So the monitor may stay where it is, on a hybrid machine too. The name has
// the monitor's process number, and a part that makes it unique.
const cgroupPrefix = "shai-task-"

// makeCgroup makes a cgroup for a task. An error means that this machine has none for it.
func makeCgroup() (path string, err error) {
	parent, err := ownCgroup()
	if err != nil {
		return "", err
	}
	// Who moves a process into a child needs this right, too.
	if err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(parent, "cgroup.procs"), unix.W_OK, unix.AT_EACCESS); err != nil {
		return "", fmt.Errorf("write to %s/cgroup.procs: %w", parent, err)
	}
	path, err = os.MkdirTemp(parent, fmt.Sprintf("%s%d-", cgroupPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(killFile(path)); err != nil { // before Linux 5.14
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

func killFile(cgroup string) string { return filepath.Join(cgroup, "cgroup.kill") }

// ownCgroup returns the directory of this process's cgroup.
func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	const version2 = "0::"
	lines := strings.Split(string(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, version2) })
	if at < 0 {
		return "", errors.New("the kernel has no cgroups of version 2")
	}
	name := strings.TrimPrefix(lines[at], version2)
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup2"))
	if err != nil {
		return "", err
	}
	for _, mount := range mounts {
		if below, err := filepath.Rel(mount.Root, name); err == nil && filepath.IsLocal(below) {
			return filepath.Join(mount.Mountpoint, below), nil
		}
	}
	return "", fmt.Errorf("no file system of type cgroup2 that contains %s is mounted", name)
}

// enterCgroup moves this process into a cgroup.
func enterCgroup(path string) error {
	if err := writeWord(filepath.Join(path, "cgroup.procs"), "0"); err != nil {
		return fmt.Errorf("enter the task's cgroup: %w", err)
	}
	return nil
}

// writeWord does not use os.File, which the launcher must not (see readPlan).
func writeWord(path, word string) error {
	file, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(file)
		_, err = unix.Write(file, []byte(word))
	}
	if err != nil {
		return fmt.Errorf("write to %s: %w", path, err)
	}
	return nil
}

// removeCgroup removes a cgroup when its processes have ended. If some have not ended
// after endLimit, removeAbandonedCgroups of a later monitor removes it.
func removeCgroup(path string) {
	events, err := unix.Open(filepath.Join(path, "cgroup.events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(events)
	for deadline := time.Now().Add(endLimit); ; {
		// Reading rearms the notification, so that a change afterwards is not missed.
		_, _ = unix.Pread(events, make([]byte, 128), 0)
		left := time.Until(deadline)
		if err := unix.Rmdir(path); !errors.Is(err, unix.EBUSY) || left <= 0 {
			return
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(events), Events: unix.POLLPRI}}, int(left.Milliseconds()))
	}
}

// removeAbandonedCgroups removes empty cgroups of monitors that were killed together with
// the keeper. A cgroup in which processes run cannot be removed.
func removeAbandonedCgroups() {
	parent, err := ownCgroup()
	if err != nil {
		return
	}
	abandoned, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, path := range abandoned {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), cgroupPrefix), "-")
		monitor, err := strconv.Atoi(number)
		if err == nil && errors.Is(unix.Kill(monitor, 0), unix.ESRCH) {
			_ = unix.Rmdir(path)
		}
	}
}

// ending examines how tasks end on this machine.
func ending() Feature {
	feature := Feature{Name: "cgroups", Needed: "version 2, writable to the monitor (Linux 5.14)", Present: true,
		Effect: "a task and all processes that it made end with one write; otherwise a task in mode baseline may not end"}
	path, err := makeCgroup()
	if err != nil {
		feature.Found, feature.Present = "missing", false
		return feature
	}
	feature.Found = "in " + filepath.Dir(path)
	removeCgroup(path)
	return feature
}
