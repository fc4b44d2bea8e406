// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// Of procctl(2), sys/procctl.h.
const (
	procReapAcquire = 2
	procReapKill    = 6
	procTrapRefused = 9 // PROC_TRAPCAP_CTL
	byProcess       = 0 // P_PID
	anyProcess      = 7 // P_ALL
)

// procctl controls a process; 0 is the calling one.
func procctl(process, command int, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_PROCCTL, byProcess, uintptr(process), uintptr(command), uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// trapRefused makes the kernel send a process a signal for each call that it refuses. The
// children that the process forks from now on inherit this.
func trapRefused(process int) error {
	enable := int32(1)
	return procctl(process, procTrapRefused, unsafe.Pointer(&enable))
}

// ownProgram returns the path of this process's program.
func ownProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	return path, nil
}

// becomeReaper makes orphaned descendants of this process its children.
func becomeReaper() error { return procctl(0, procReapAcquire, nil) }

// endedChild waits for a child that has ended, and does not reap it.
func endedChild() (int, error) {
	var status int32
	pid, _, errno := unix.Syscall6(unix.SYS_WAIT6, anyProcess, 0, uintptr(unsafe.Pointer(&status)),
		unix.WEXITED|unix.WNOWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}

// reapKill is struct procctl_reaper_kill.
type reapKill struct {
	signal      int32
	flags       uint32
	subtree     int32
	killed      uint32
	firstFailed int32
	_           [15]uint32
}

// enclosure holds the processes of one task together: here, the keeper does, which is
// their reaper.
type enclosure struct{}

// enclose fails if the task asks for a limit that this system does not set.
func enclose(spec Spec, _ plan.Plan) (enclosure, error) {
	if l := spec.Limits; l.Processes != 0 || l.CPU != 0 || l.TotalMemory != 0 {
		return enclosure{}, fmt.Errorf("limit processes, processor time or memory of the whole task: on Linux only: %w",
			plan.ErrUnsupported)
	}
	return enclosure{}, nil
}

func (enclosure) enter() error                        { return nil }
func (enclosure) remove()                             {}
func (enclosure) endsWithKeeper() bool                { return false }
func (enclosure) monitorsNumber(pid int) (int, error) { return pid, nil }
func (enclosure) attributes() *syscall.SysProcAttr { // out of reach of the terminal's Ctrl-C
	return &syscall.SysProcAttr{Setsid: true}
}

// kill kills every descendant of this process, in whichever process group it is. The
// kernel finds them.
func (enclosure) kill(int) {
	kill := reapKill{signal: int32(unix.SIGKILL)}
	// ESRCH: no process is left, as intended.
	_ = procctl(0, procReapKill, unsafe.Pointer(&kill))
}

// killWithoutKeeper kills the program's process group when the keeper was killed.
func (enclosure) killWithoutKeeper(program int) { _ = unix.Kill(-program, unix.SIGKILL) }

// killLeaked kills the processes that the program left behind. The kernel finds them.
func (e enclosure) killLeaked() map[int]bool {
	e.kill(0)
	return nil
}
