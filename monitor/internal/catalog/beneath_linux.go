// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

func openDirectory(path string) (*os.File, error) {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// openBeneath opens a directory by a path that neither leaves the starting directory nor
// passes a symbolic link.
func openBeneath(directory int, relative string) (int, error) {
	return unix.Openat2(directory, relative, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// reserve makes a file that long, with room on the disk for all of it: access to a mapped
// page that cannot be stored would kill the process.
func reserve(file *os.File, size int64) error {
	return unix.Fallocate(int(file.Fd()), 0, 0, size)
}
