// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownProgram returns a path of this process's program that holds even after the file was
// renamed.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// becomeReaper makes orphaned descendants of this process its children.
func becomeReaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endedChild waits for a child that has ended, and does not reap it.
func endedChild() (int, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
	return childOf(&info), err
}

// childOf returns si_pid, which x/sys has no field for: the first word after the three
// common ones and their padding.
func childOf(info *unix.Siginfo) int { return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16))) }

// parentOf returns the parent of a process, 0 if it has none or has ended.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// "pid (name) state parent …"; the name may contain anything.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// IsKeeper reports whether a process is the keeper or the supervisor of a task whose
// monitor runs. When the monitor ends, they get another parent. A keeper executes the same
// program as the monitor; a supervisor is told the monitor's.
func IsKeeper(pid int) bool {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	words, monitor := strings.Split(string(arguments), "\x00"), programOf(parentOf(pid))
	if words[0] == supervisorName {
		return len(words) > 1 && words[1] == monitor
	}
	own, err := os.Stat(programOf(pid))
	if err != nil || words[0] != keeperName {
		return false
	}
	other, err := os.Stat(monitor)
	return err == nil && os.SameFile(own, other)
}

// IsOrphanedSupervisor reports whether a process is a supervisor whose monitor has ended. One
// that is ending itself has no arguments any more, and counts as such.
func IsOrphanedSupervisor(pid int) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || strings.TrimSpace(string(name)) != supervisorName {
		return false
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(arguments) == 0 {
		return err == nil
	}
	monitor := 0
	words := strings.Split(string(arguments), "\x00")
	_, err = fmt.Sscanf(words[min(1, len(words)-1)], "/proc/%d/exe", &monitor)
	return err == nil && monitor != parentOf(pid)
}

// programOf returns a path of the program that a process executes, which holds even after
// the file was renamed.
func programOf(pid int) string { return fmt.Sprintf("/proc/%d/exe", pid) }
