// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownProgram is the file of this process, whatever its name is by now.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// becomeReaper makes orphans of this process' descendants its children.
func becomeReaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endedChild waits for a child that has ended, and leaves it to be reaped.
func endedChild() (int, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
	return childOf(&info), err
}

// childOf is si_pid, which x/sys does not name: the first word after the three
// common ones and their padding.
func childOf(info *unix.Siginfo) int { return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16))) }

// killTask kills the processes of the program's group, which the filter keeps them in.
// That is atomic with respect to fork: a process that is being forked either belongs to
// the group already or its fork fails on the pending signal.
func killTask(program int) { unix.Kill(-program, unix.SIGKILL) }

// killAdopted kills the processes that a program without a filter (mode
// baseline) moved out of its group. They become the keeper's children when
// their parents die, and reap comes back here for each.
func killAdopted() {
	self := strconv.Itoa(os.Getpid())
	statuses, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range statuses {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// "pid (name) state parent …"; the name may contain anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == self {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}
