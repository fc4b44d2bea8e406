// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// hideReads gives the calling thread mounts of its own, on which reading a file does not
// change its time of access. A task that may write the file, but not read it, would see
// in that time when others read. Mounts and unmounts of the machine still reach the
// thread. It needs the superuser's rights.
func hideReads() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	quiet := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOATIME, Attr_clr: unix.MOUNT_ATTR__ATIME,
		Propagation: unix.MS_SLAVE}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &quiet); err != nil {
		return fmt.Errorf("turn times of access off: %w", err)
	}
	return nil
}

// canHideReads tries it on a thread that ends with it.
var canHideReads = sync.OnceValue(func() bool {
	tried := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread and its mounts go
		tried <- hideReads()
	}()
	return <-tried == nil
})

func times() Feature {
	return Feature{Name: "hidden reads", Found: found(canHideReads(), "present"),
		Needed: "the superuser's rights, / a mount (Linux 5.12)", Present: canHideReads(),
		Effect: "reading a file does not change its time of access, which tasks that may write it see"}
}
