// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// probe examines the kernel without changing anything.
func probe() Report {
	abi := landlockABI()
	needed := []Feature{
		architecture(),
		{Name: "Landlock", Found: found(abi > 0, fmt.Sprintf("ABI %d", abi)), Needed: "ABI 4 (Linux 6.7)",
			Present: abi >= plan.NeededLandlock, Effect: "confines files, and TCP bind and connect"},
		{Name: "seccomp filters", Found: found(filtersAvailable(), "present"),
			Needed: "Linux 4.14", Present: filtersAvailable(),
			Effect: "limit a task's system calls; mode baseline needs them, too, to refuse namespaces"},
		{Name: "seccomp user notification", Found: found(notificationAvailable(), "present"),
			Needed:  "Linux 5.14 (with descriptor injection)",
			Present: notificationAvailable(), Effect: "the monitor answers opens that are not native"},
		{Name: "killable waiting", Found: found(filterFlagAvailable(), "present"),
			Needed:  "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19)",
			Present: filterFlagAvailable(), Effect: "signals do not restart calls that the monitor is answering"},
	}
	optional := []Feature{
		{Name: "Landlock device ioctl", Found: found(abi >= 5, "present"), Needed: "ABI 5 (Linux 6.10)",
			Present: abi >= 5, Effect: "device ioctls are refused by Landlock, not only by the filter"},
		{Name: "Landlock scopes", Found: found(abi >= plan.ScopedLandlock, "present"), Needed: "ABI 6 (Linux 6.12)",
			Present: abi >= plan.ScopedLandlock, Effect: "signals stay inside the task natively; otherwise the monitor checks each"},
		{Name: "detached mounts", Found: found(mountsAvailable(), "present"),
			Needed: "the superuser's rights (Linux 5.12)", Present: mountsAvailable(),
			Effect: "sessions open their documents natively; otherwise the monitor opens each"},
		yama(), users(), owners(), times(),
	}
	return Report{System: system(), Backend: "landlock+seccomp", Enforcement: judge(needed, optional),
		Features: slices.Concat(needed, optional, []Feature{documentWatch(), ending()}, limitations())}
}

// documentWatch, as ending and limitations, does not concern the confinement of tasks.
func documentWatch() Feature {
	group, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_DFID_NAME|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err == nil {
		unix.Close(group)
	}
	return Feature{Name: "fanotify", Found: found(err == nil, "present"), Needed: "Linux 5.13", Present: err == nil,
		Effect: "documents that come, change or go are followed at once, otherwise by sweeps, within minutes"}
}

func found(present bool, text string) string {
	if !present {
		return "missing"
	}
	return text
}

func architecture() Feature {
	return Feature{Name: "architecture", Found: runtime.GOARCH, Needed: "amd64", Present: runtime.GOARCH == "amd64",
		Effect: "the filter knows this system call table"}
}

func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "linux"
	}
	return fmt.Sprintf("linux %s %s", unix.ByteSliceToString(name.Release[:]), unix.ByteSliceToString(name.Machine[:]))
}

func filtersAvailable() bool { return actionAvailable(unix.SECCOMP_RET_KILL_PROCESS) }

func notificationAvailable() bool { return actionAvailable(unix.SECCOMP_RET_USER_NOTIF) }

// actionAvailable reports whether a filter can give this answer.
func actionAvailable(action uint32) bool {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}

// filterFlagAvailable asks for the flag without a program. A kernel that knows the flag
// fails because the program is missing; others fail because of the flag.
func filterFlagAvailable() bool {
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
	return errno == unix.EFAULT
}

// yama examines Yama, which restricts which processes may read another one's memory. The
// monitor is an ancestor of its tasks, which scope 1 permits.
func yama() Feature {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(text))
	feature := Feature{Name: "Yama ptrace scope", Found: "scope " + scope, Needed: "at most scope 1, or privileges",
		Present: scope == "0" || scope == "1" || os.Geteuid() == 0 && scope == "2",
		Effect:  "the monitor may read the paths that its tasks ask for"}
	if err != nil {
		feature.Found, feature.Present = "not active", true
	}
	return feature
}
