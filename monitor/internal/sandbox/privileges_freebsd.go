// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// Of sys/procctl.h: from now on, no executed program gets privileges from its set-user-ID
// or set-group-ID bit.
const (
	noNewPrivileges = 19 // PROC_NO_NEW_PRIVS_CTL
	enableForGood   = 1  // PROC_NO_NEW_PRIVS_ENABLE
)

// dropPrivileges makes this process run as the task's user. It comes after every step
// that needs privileges. FreeBSD has no capabilities that an ordinary user could keep.
func (p launchPlan) dropPrivileges() error {
	if p.Privileged {
		return nil
	}
	enable := int32(enableForGood)
	if err := procctl(0, noNewPrivileges, unsafe.Pointer(&enable)); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if p.User == nil {
		return nil
	}
	id, group := int(p.User.ID), int(p.User.Group)
	for _, step := range []func() error{
		func() error { return syscall.Setgroups([]int{group}) }, // the first is the effective group
		func() error { return unix.Setresgid(group, group, group) },
		func() error { return unix.Setresuid(id, id, id) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become user and group %d of the pipeline (does the jail allow it?): %w", p.User.ID, err)
		}
	}
	return nil
}

// reaches refuses nothing on FreeBSD, where all threads of a process have one user. Opens
// for a task are judged by the file's own mode.
func (a *arbiter) reaches(*pinned) error { return nil }

// mayOpen reports by the file's mode whether the monitor may open it for the task.
func mayOpen(u *plan.User, stat *unix.Stat_t, flags int) error {
	if u == nil {
		return nil
	}
	wanted := uint32(4)
	switch flags & accessMode {
	case unix.O_WRONLY:
		wanted = 2
	case unix.O_RDWR:
		wanted = 6
	}
	if flags&unix.O_TRUNC != 0 {
		wanted |= 2
	}
	if !u.Permits(stat.Uid, stat.Gid, uint32(stat.Mode), wanted) {
		return unix.EACCES
	}
	return nil
}
