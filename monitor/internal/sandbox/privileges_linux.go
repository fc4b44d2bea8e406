// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// lockedBits keep every later exec from restoring capabilities: root gets none by exec,
// and none survives a change of user (SECBIT_NOROOT, SECBIT_NO_CAP_AMBIENT_RAISE, and the
// locks of all).
const lockedBits = 1<<0 | 1<<1 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropPrivileges makes the calling thread run as the task's user and removes every
// capability from it, for good. It comes after every step that needs privileges, and
// before the confinement, which would refuse these calls.
func (p launchPlan) dropPrivileges() error {
	// Landlock and seccomp need no_new_privs, too.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if p.Privileged {
		return nil
	}
	parent := os.Getppid()
	if err := dropBounds(p.User != nil); err != nil {
		return err
	}
	if p.User != nil {
		if err := becomeUser(p.User); err != nil {
			return fmt.Errorf("become user %d and group %d of the pipeline (are they mapped in this container? shai monitor --task-ids names others): %w", p.User.ID, p.User.Group, err)
		}
	}
	if err := clearCapabilities(); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	// A change of user cancels the signal that ends the task with its keeper.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask for a signal when the keeper dies: %w", err)
	}
	if os.Getppid() != parent {
		return errors.New("the keeper has died")
	}
	return nil
}

// dropBounds empties the bounding and the ambient set. An unprivileged thread cannot do
// this and need not: no_new_privs has the same effect.
func dropBounds(isPrivileged bool) error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && capability > 0 {
			break // the kernel has no more capabilities
		}
		if errors.Is(err, unix.EPERM) && !isPrivileged {
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	if !isPrivileged {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, lockedBits, 0, 0, 0); err != nil {
		return fmt.Errorf("lock securebits: %w", err)
	}
	return nil
}

// becomeUser changes the credentials of the calling thread alone, which are those that exec
// keeps.
func becomeUser(user *plan.User) error {
	id, group := uintptr(user.ID), uintptr(user.Group)
	for _, step := range []struct {
		call uintptr
		of   [3]uintptr
	}{
		{unix.SYS_SETGROUPS, [3]uintptr{}},
		{unix.SYS_SETRESGID, [3]uintptr{group, group, group}},
		{unix.SYS_SETRESUID, [3]uintptr{id, id, id}},
	} {
		if _, _, errno := unix.RawSyscall(step.call, step.of[0], step.of[1], step.of[2]); errno != 0 {
			return errno
		}
	}
	return nil
}

func clearCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	left := [2]unix.CapUserData{{Effective: 1}}
	if err := unix.Capget(&header, &left[0]); err != nil {
		return err
	}
	if left != none {
		return errors.New("some are left")
	}
	return nil
}

// asUser runs act with the task's rights on files instead of the monitor's: the monitor
// must not open for a task what the task could not open by itself. An open file keeps the
// capabilities of the thread that opened it, so the thread has none in the meantime.
func asUser(user *plan.User, act func() error) error {
	if user == nil {
		return act()
	}
	runtime.LockOSThread()
	own, err := rightsOfThread()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	if err := errors.Join(setFileUser(user.ID, user.Group), own.setEffective([2]uint32{})); err != nil {
		return err // the thread stays locked, and ends with this goroutine
	}
	failure := act()
	if err := own.restore(); err != nil {
		return err
	}
	runtime.UnlockOSThread()
	return failure
}

// threadRights are the rights that a thread of the monitor gets back after it has acted
// as a task's user.
type threadRights struct {
	deathSignal  uintptr
	capabilities [2]unix.CapUserData
}

var capabilityHeader = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}

func rightsOfThread() (threadRights, error) {
	var own threadRights
	if _, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG,
		uintptr(unsafe.Pointer(&own.deathSignal)), 0); errno != 0 {
		return own, errno
	}
	header := capabilityHeader
	return own, unix.Capget(&header, &own.capabilities[0])
}

// setEffective sets the effective capabilities. It keeps the permitted set, from which
// they are restored later.
func (own threadRights) setEffective(effective [2]uint32) error {
	header, wanted := capabilityHeader, own.capabilities
	wanted[0].Effective, wanted[1].Effective = effective[0], effective[1]
	if err := unix.Capset(&header, &wanted[0]); err != nil {
		return fmt.Errorf("change the effective capabilities of a thread: %w", err)
	}
	return nil
}

// restore gives the thread its rights back. The capabilities come first, since a change
// of the user needs one.
func (own threadRights) restore() error {
	before := [2]uint32{own.capabilities[0].Effective, own.capabilities[1].Effective}
	if err := own.setEffective(before); err != nil {
		return err
	}
	if err := setFileUser(uint32(os.Geteuid()), uint32(os.Getegid())); err != nil {
		return err
	}
	// A change of user clears the thread's parent-death signal.
	return unix.Prctl(unix.PR_SET_PDEATHSIG, own.deathSignal&0xffffffff, 0, 0, 0)
}

// setFileUser sets the user and group whose rights on files the calling thread has. The
// kernel does not report failure; a second call with an invalid user returns the current
// one.
func setFileUser(id, group uint32) error {
	const nobody = ^uintptr(0)
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(group), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(id), 0, 0)
	nowGroup, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, nobody, 0, 0)
	now, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0)
	if uint32(now) != id || uint32(nowGroup) != group {
		return fmt.Errorf("act on files as user %d, group %d: %w", id, group, syscall.EPERM)
	}
	return nil
}
