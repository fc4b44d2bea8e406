// SPDX-License-Identifier: BSD-2-Clause

package taskid

import (
	"crypto/rand"
	"errors"

	"golang.org/x/sys/unix"
)

// markName is an extended attribute that only the superuser reads and writes (xattr(7)), so no
// task can make its directory another one. Copies have it only if root makes them with extended
// attributes.
const markName = "trusted.shai.data"

// markOf returns what distinguishes a data directory from others that were or will be at its
// path, and marks it if nobody has. "": it has no mark, and its file system takes none.
func markOf(directory string) (string, error) {
	text := make([]byte, 64)
	n, err := unix.Getxattr(directory, markName, text)
	if err == nil && n > 0 {
		return string(text[:n]), nil
	}
	if err != nil && !errors.Is(err, unix.ENODATA) {
		return "", unlessUnsupported(err)
	}
	mark := rand.Text()
	if err := unix.Setxattr(directory, markName, []byte(mark), unix.XATTR_CREATE); err != nil {
		return "", unlessUnsupported(err)
	}
	return mark, nil
}

func unlessUnsupported(err error) error {
	for _, expected := range []error{unix.ENOTSUP, unix.EPERM, unix.EROFS, unix.ENOENT} {
		if errors.Is(err, expected) {
			return nil
		}
	}
	return err
}
