// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

const (
	// rootAttributes are those of the file system at a task's root.
	rootAttributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	// executedAttributes are those of the files that are mounted in it.
	executedAttributes = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV |
		unix.MOUNT_ATTR_NOATIME
)

// ownRoot is the root of a task that serves users. The task's opens relative to a
// descriptor run natively, and a path that begins with "/" leads out of every
// descriptor's directory. It therefore must lead nowhere: the root holds only the files
// that the kernel reads to execute the program ([Executed]).
type ownRoot struct {
	files       []plan.ExecutedFile
	directory   string // in which the program starts, empty like all others; "" is "/"
	descriptor  int    // of the new root
	descriptors []int  // of the files' mounts
}

// enter makes a root and moves the calling thread into it, in a mount namespace of its
// own, from which nothing leads back.
func (r *ownRoot) enter() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mount namespace: %w", err)
	}
	for _, step := range []func() error{r.open, r.create, r.attach, r.pivot} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// open makes a mount of each file while its path still leads to it.
func (r *ownRoot) open() error {
	for _, file := range r.files {
		mount, err := mountOf(file.Path, executedAttributes)
		if err != nil {
			return err
		}
		r.descriptors = append(r.descriptors, mount)
	}
	return nil
}

// mountOf makes a detached mount of a file or directory. No symbolic link in the path is
// followed. The mount is unmounted when the last descriptor of it is closed.
func mountOf(path string, attributes uint64) (int, error) {
	place, err := unix.Openat2(unix.AT_FDCWD, path,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(place)
	mount, err := unix.OpenTree(place, "", unix.OPEN_TREE_CLONE|unix.O_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("make a mount of %s: %w", path, err)
	}
	if err := setAttributes(mount, attributes); err != nil {
		unix.Close(mount)
		return -1, fmt.Errorf("make a mount of %s: %w", path, err)
	}
	return mount, nil
}

func setAttributes(mount int, attributes uint64) error {
	change := unix.MountAttr{Attr_set: attributes}
	if attributes&unix.MOUNT_ATTR__ATIME != 0 {
		change.Attr_clr = unix.MOUNT_ATTR__ATIME
	}
	return unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &change)
}

// create makes the file system with an empty file for each mount.
func (r *ownRoot) create() error {
	var err error
	if r.descriptor, err = newFileSystem(); err != nil {
		return fmt.Errorf("make a root: %w", err)
	}
	for _, file := range r.files {
		if err := r.provide(file); err != nil {
			return fmt.Errorf("make a root with %s: %w", file.Name, err)
		}
	}
	return r.directories(strings.TrimPrefix(r.directory, "/"))
}

// provide makes a file for the mount, and a link to it if the kernel will look for it
// under another name.
func (r *ownRoot) provide(file plan.ExecutedFile) error {
	if err := r.directories(path.Dir(relative(file.Path))); err != nil {
		return err
	}
	made, err := unix.Openat(r.descriptor, relative(file.Path), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return err
	}
	unix.Close(made)
	if file.Name == file.Path {
		return nil
	}
	if err := r.directories(path.Dir(relative(file.Name))); err != nil {
		return err
	}
	if err := unix.Symlinkat(file.Path, r.descriptor, relative(file.Name)); !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

func relative(path string) string { return strings.TrimPrefix(path, "/") }

// directories makes a directory with all above it, which every user can search whatever
// the monitor's umask is.
func (r *ownRoot) directories(name string) error {
	if name == "." || name == "" {
		return nil
	}
	if err := r.directories(path.Dir(name)); err != nil {
		return err
	}
	if err := unix.Mkdirat(r.descriptor, name, 0); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		return err
	}
	return unix.Fchmodat(r.descriptor, name, 0o755, 0)
}

// attach mounts the file system, and the files in it.
func (r *ownRoot) attach() error {
	if err := unix.MoveMount(r.descriptor, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a root: %w", err)
	}
	for i, file := range r.files {
		if err := unix.MoveMount(r.descriptors[i], "", r.descriptor, relative(file.Path),
			unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s in a root: %w", file.Path, err)
		}
	}
	return setAttributes(r.descriptor, rootAttributes)
}

// pivot makes the file system the root, and unmounts everything else in the namespace.
func (r *ownRoot) pivot() error {
	err := unix.Fchdir(r.descriptor)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = unix.Unmount(".", unix.MNT_DETACH)
	}
	if err == nil {
		err = os.Chdir("/" + relative(r.directory))
	}
	if err != nil {
		return fmt.Errorf("enter a root: %w", err)
	}
	return nil
}
