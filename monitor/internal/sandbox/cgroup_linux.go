// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A task's cgroups are children of the monitor's own: one of version 2, which ends the task,
// and one for each controller of version 1 that limits the task (see cgroupLimit). The name
// has the monitor (see monitorName), and a part that makes it unique.
const cgroupPrefix = "shai-task-"

// monitorName returns the part of a cgroup's name that tells its monitor: the PID namespace and
// the number in it. Monitors of several namespaces may share a hierarchy, and a number that one
// does not find may be another's.
func monitorName(process int) (string, error) {
	var namespace unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &namespace); err != nil {
		return "", fmt.Errorf("name a cgroup by /proc/self/ns/pid: %w", err)
	}
	return fmt.Sprintf("%d-%d", namespace.Ino, process), nil
}

// makeCgroup makes a cgroup for a task. An error means that this machine has none for it.
func makeCgroup() (path string, err error) {
	parent, err := tasksCgroup()
	if err != nil {
		return "", err
	}
	if path, err = makeCgroupIn(parent); err != nil {
		return "", err
	}
	if _, err := os.Stat(killFile(path)); err != nil { // before Linux 5.14
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

func makeCgroupIn(parent string) (string, error) {
	// Who moves a process into a child needs this right, too.
	if err := mayWrite(filepath.Join(parent, "cgroup.procs")); err != nil {
		return "", err
	}
	monitor, err := monitorName(os.Getpid())
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, cgroupPrefix+monitor+"-")
}

func mayWrite(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("write to %s: %w", path, err)
	}
	return nil
}

func killFile(cgroup string) string { return filepath.Join(cgroup, "cgroup.kill") }

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

// removeAbandonedCgroups removes empty cgroups of monitors of this PID namespace that have ended
// without removing them: those of tasks whose keeper was killed, too, and the monitors' own. A
// cgroup in which processes run cannot be removed.
func removeAbandonedCgroups() {
	directories := []func() (string, error){tasksCgroup}
	for _, controller := range []string{"pids", "cpu", "memory"} {
		directories = append(directories, version1Of(controller).own)
	}
	for _, directory := range directories {
		parent, err := directory()
		if err != nil {
			continue
		}
		for _, prefix := range []string{cgroupPrefix, leafPrefix} {
			abandoned, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
			for _, path := range abandoned {
				if hasEnded(strings.TrimPrefix(filepath.Base(path), prefix)) {
					_ = unix.Rmdir(path)
				}
			}
		}
	}
}

// hasEnded reports whether a name that begins with monitorName's is of a process of this PID
// namespace that has ended.
func hasEnded(name string) bool {
	_, number, _ := strings.Cut(name, "-")
	number, _, _ = strings.Cut(number, "-")
	process, err := strconv.Atoi(number)
	if err != nil || !errors.Is(unix.Kill(process, 0), unix.ESRCH) {
		return false
	}
	own, err := monitorName(process)
	return err == nil && (name == own || strings.HasPrefix(name, own+"-"))
}
