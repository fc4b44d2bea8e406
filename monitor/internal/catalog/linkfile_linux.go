// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// namedFile is a file that had a name in a directory when it was opened.
type namedFile struct {
	descriptor int // with O_PATH: an open that waits for no pipe, and does nothing with a device
	stat       unix.Stat_t
}

// openNamed opens what has a name in a directory, and follows no link.
func openNamed(directory int, base string) (*namedFile, error) {
	descriptor, err := unix.Openat(directory, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := &namedFile{descriptor: descriptor}
	if err := unix.Fstat(descriptor, &f.stat); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *namedFile) close() { _ = unix.Close(f.descriptor) }

// link gives the file another name, whatever its own means now.
func (f *namedFile) link(directory int, target string) error {
	err := unix.Linkat(f.descriptor, "", directory, target, unix.AT_EMPTY_PATH)
	if !errors.Is(err, unix.ENOENT) {
		return err
	}
	// Without CAP_DAC_READ_SEARCH the kernel says that it does not exist. It may really be so.
	magic := "/proc/self/fd/" + strconv.Itoa(f.descriptor)
	return unix.Linkat(unix.AT_FDCWD, magic, directory, target, unix.AT_SYMLINK_FOLLOW)
}
