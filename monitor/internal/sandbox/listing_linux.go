// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// newFileSystem makes a detached, empty file system in memory, which is gone when its last
// descriptor is closed.
func newFileSystem() (int, error) {
	system, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make a file system: %w", err)
	}
	defer unix.Close(system)
	if err := errors.Join(unix.FsconfigSetString(system, "mode", "0755"), unix.FsconfigCreate(system)); err != nil {
		return -1, fmt.Errorf("make a file system: %w", err)
	}
	mount, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a file system: %w", err)
	}
	return mount, nil
}

// listingOf makes a directory with the same names as another, of the same types, that
// nobody can open. A task whose opens relative to a descriptor run natively gets it instead
// of the directory itself: it can list it, but open nothing beneath it unseen.
func listingOf(directory int) (int, error) {
	source := os.NewFile(uintptr(directory), "directory")
	defer source.Close()
	entries, err := source.ReadDir(-1)
	if err != nil {
		return -1, err
	}
	mount, err := newFileSystem()
	if err != nil {
		return -1, err
	}
	defer unix.Close(mount)
	for _, entry := range entries {
		if err := imitate(mount, entry); err != nil {
			return -1, fmt.Errorf("list %s: %w", entry.Name(), err)
		}
	}
	if err := setAttributes(mount, rootAttributes|unix.MOUNT_ATTR_NOSYMFOLLOW); err != nil {
		return -1, err
	}
	return unix.Openat(mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func imitate(directory int, entry fs.DirEntry) error {
	switch entry.Type() {
	case fs.ModeDir:
		return unix.Mkdirat(directory, entry.Name(), 0)
	case fs.ModeSymlink:
		return unix.Symlinkat(".", directory, entry.Name())
	case fs.ModeNamedPipe:
		return unix.Mknodat(directory, entry.Name(), unix.S_IFIFO, 0)
	}
	return unix.Mknodat(directory, entry.Name(), unix.S_IFREG, 0)
}
