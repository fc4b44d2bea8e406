// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
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
	return turnTimesOff(unix.AT_FDCWD, "/", unix.AT_RECURSIVE)
}

func turnTimesOff(directory int, path string, flags uint) error {
	quiet := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOATIME, Attr_clr: unix.MOUNT_ATTR__ATIME,
		Propagation: unix.MS_SLAVE}
	if err := unix.MountSetattr(directory, path, flags, &quiet); err != nil {
		return fmt.Errorf("turn times of access off: %w", err)
	}
	return nil
}

// cover puts an empty directory in the place of each of these that exists. The calling thread has a
// mount namespace of its own. The kernel tells a task, in the calls that it answers by itself,
// whether there is a name that the task's user may look up.
func cover(directories []string) error {
	for _, directory := range directories {
		if err := coverOne(directory); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			return fmt.Errorf("hide %s from a task: %w", directory, err)
		}
	}
	return nil
}

func coverOne(directory string) error {
	place, err := unix.Open(directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	empty, err := newFileSystem()
	if err != nil {
		return err
	}
	defer unix.Close(empty)
	if err := setAttributes(empty, rootAttributes); err != nil {
		return err
	}
	return mountAt(empty, place)
}

// quietRoot makes mounts of everything that the monitor sees, on which reading a file does
// not change its time of access. They are unmounted when the descriptor is closed.
func quietRoot() (int, error) {
	root, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.O_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("make mounts for a task: %w", err)
	}
	if err := turnTimesOff(root, "", unix.AT_RECURSIVE|unix.AT_EMPTY_PATH); err != nil {
		unix.Close(root)
		return -1, err
	}
	return root, nil
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
