// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux

package catalog

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

const openStep = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openDirectory(path string) (*os.File, error) {
	descriptor, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// openBeneath opens a directory by a path that neither leaves the starting directory nor
// passes a symbolic link. It goes step by step, because no flag of this system forbids
// links before the last element.
func openBeneath(directory int, relative string) (int, error) {
	if !fs.ValidPath(path.Clean(relative)) {
		return -1, unix.EXDEV
	}
	current, err := unix.Openat(directory, ".", openStep, 0)
	if err != nil {
		return -1, err
	}
	for element := range strings.SplitSeq(path.Clean(relative), "/") {
		next, err := unix.Openat(current, element, openStep, 0)
		_ = unix.Close(current)
		if err != nil {
			return -1, err
		}
		current = next
	}
	return current, nil
}

// reserve makes a file at least that long, with room on the disk for all of it: access to
// a mapped page that cannot be stored would kill the process. It writes zeros, because
// not every file system here can reserve blocks.
func reserve(file *os.File, size int64) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<16)
	for at := info.Size(); at < size; at += int64(len(zeros)) {
		if _, err := file.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}
