// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// namespacesAvailable tries to make a PID namespace on a thread that ends with it.
var namespacesAvailable = sync.OnceValue(func() bool {
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its namespace go
		tried <- unix.Unshare(unix.CLONE_NEWPID)
	}()
	return <-tried == nil
})

// mountProcesses gives the calling thread mounts of its own, with a /proc that shows the
// processes of its PID namespace by their numbers there.
func mountProcesses() error {
	if err := ownMounts(); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc for the task: %w", err)
	}
	return nil
}

// ownMounts gives the calling thread mounts of its own. Mounts and unmounts of the machine still
// reach it.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate the mount namespace: %w", err)
	}
	return nil
}

// numberOutside returns the number that a process of this process's PID namespace has in
// the one that /proc shows, which is the monitor's.
func numberOutside(pid int) (int, error) {
	descriptor, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, fmt.Errorf("find the task's process: %w", err)
	}
	defer unix.Close(descriptor)
	file, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", descriptor))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if number, found := strings.CutPrefix(lines.Text(), "Pid:"); found {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, fmt.Errorf("%s names no process", file.Name())
}
