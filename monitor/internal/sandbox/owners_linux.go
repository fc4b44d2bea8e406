// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// The processes of a task have a user of their own, and the files of its pipeline belong to
// one user, whichever task has made them. Both hold because the task has mounts of its own
// on which the kernel exchanges the two users (id-mapped mounts, mount_setattr(2)): there the
// pipeline's files are the task's, and what the task makes is the pipeline's on the disk.
// systemd does the same for the state directories of dynamic users.

// CanMapOwners returns why tasks cannot have users of their own that are the owners of their
// pipeline's files in the directories, nil if they can. Its numbers need not be in use.
func CanMapOwners(directories []string) error {
	return withOwnerNamespace(anyUser, func(namespace int) error {
		for _, directory := range directories {
			mount, err := mountWithOwners(directory, namespace)
			if err != nil {
				return err
			}
			unix.Close(mount)
		}
		return nil
	})
}

// ownersMapped reports whether the kernel can map owners, on a file system in memory.
var ownersMapped = sync.OnceValue(func() bool {
	return withOwnerNamespace(anyUser, func(namespace int) error {
		mount, err := newFileSystem()
		if err != nil {
			return err
		}
		defer unix.Close(mount)
		return setOwners(mount, namespace)
	}) == nil
})

func owners() Feature {
	return Feature{Name: "users of single tasks", Found: found(ownersMapped(), "present"),
		Needed:  "the superuser's rights, id-mapped mounts (Linux 6.3), also of the data directory's file system",
		Present: ownersMapped(), Effect: "the tasks of a pipeline run as different users; otherwise they share one"}
}

// anyUser is one to try with.
var anyUser = plan.User{ID: 1, Files: 2}

// withOwnerNamespace calls a function with the namespace for a user.
func withOwnerNamespace(user plan.User, use func(namespace int) error) error {
	runtime.LockOSThread() // of which the process that ownerNamespace makes is a child
	defer runtime.UnlockOSThread()
	namespace, err := ownerNamespace(user)
	if err != nil {
		return err
	}
	defer unix.Close(namespace)
	return use(namespace)
}

// mapOwners gives the calling thread mounts of the task's directories, on which what belongs
// to the user of the files belongs to the task's. The thread has a mount namespace of its own.
func mapOwners(user plan.User, directories []string) error {
	return withOwnerNamespace(user, func(namespace int) error {
		// All are made before the first is in its place: one may be beneath another.
		mounts := make([]int, 0, len(directories))
		defer func() {
			for _, mount := range mounts {
				unix.Close(mount)
			}
		}()
		for _, directory := range directories {
			mount, err := mountWithOwners(directory, namespace)
			if err != nil {
				return err
			}
			mounts = append(mounts, mount)
		}
		for i, directory := range directories {
			if err := putInPlace(mounts[i], directory); err != nil {
				return fmt.Errorf("mount %s for a task's user: %w", directory, err)
			}
		}
		return nil
	})
}

// putInPlace mounts a detached mount of a directory over the directory.
func putInPlace(mount int, directory string) error {
	place, err := unix.Open(directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	return mountAt(mount, place)
}

func mountAt(mount, place int) error {
	return unix.MoveMount(mount, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// mountWithOwners makes a detached mount of a directory, and of all that is mounted in it, with
// the users of a namespace. Mounts and unmounts of the machine still reach it.
func mountWithOwners(directory string, namespace int) (int, error) {
	mount, err := unix.OpenTree(unix.AT_FDCWD, directory,
		unix.OPEN_TREE_CLONE|unix.O_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("make a mount of %s: %w", directory, err)
	}
	if err := setOwners(mount, namespace); err != nil {
		unix.Close(mount)
		return -1, fmt.Errorf("map the owners of files in %s (does its file system have id-mapped mounts, as ext4, XFS and Btrfs do?): %w",
			directory, err)
	}
	return mount, nil
}

// setOwners gives a detached mount, and all mounts in it, the users of a namespace.
func setOwners(mount, namespace int) error {
	return unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP, Propagation: unix.MS_SLAVE,
		Userns_fd: uint64(namespace)})
}

// ownerNamespace returns a user namespace in which the task's user and that of its files are
// exchanged, and all others are themselves. No process stays in it: it only describes this to
// the kernel. The calling goroutine is locked to its thread.
func ownerNamespace(user plan.User) (namespace int, err error) {
	// The child stops before its first instruction, since it is traced, and then ends.
	child, err := syscall.ForkExec("/proc/self/exe", []string{"shai-sandbox-owners"}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: exchanged(user.ID, user.Files),
			GidMappings: exchanged(0, 0), Ptrace: true, Pdeathsig: unix.SIGKILL}})
	if err != nil {
		return -1, fmt.Errorf("make a user namespace for the owners of a task's files (it needs CAP_SYS_ADMIN, CAP_SETUID, "+
			"CAP_SETGID and CAP_SETFCAP): %w", err)
	}
	namespace, err = unix.Open(fmt.Sprintf("/proc/%d/ns/user", child), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if failure := errors.Join(err, unix.Kill(child, unix.SIGKILL), awaitChild(child)); failure != nil {
		if err == nil {
			unix.Close(namespace)
		}
		return -1, fmt.Errorf("open the user namespace for the owners of a task's files: %w", failure)
	}
	return namespace, nil
}

// awaitChild waits until a child has been killed.
func awaitChild(child int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(child, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && status.Stopped():
		default:
			return err
		}
	}
}

// exchanged maps all users (or groups) to themselves but two, which are exchanged.
func exchanged(a, b uint32) (mappings []syscall.SysProcIDMap) {
	const end = int(^uint32(0)) // -1 is no user
	next := 0
	add := func(inside, outside, count int) {
		if count > 0 {
			mappings = append(mappings, syscall.SysProcIDMap{ContainerID: inside, HostID: outside, Size: count})
		}
	}
	low, high := int(min(a, b)), int(max(a, b))
	if low < high {
		add(0, 0, low)
		add(low, high, 1)
		add(low+1, low+1, high-low-1)
		add(high, low, 1)
		next = high + 1
	}
	add(next, next, end-next)
	return mappings
}
