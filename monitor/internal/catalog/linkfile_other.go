// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux

package catalog

import (
	"golang.org/x/sys/unix"
)

// namedFile is a file that had a name in a directory when it was examined.
type namedFile struct {
	directory int
	base      string
	stat      unix.Stat_t
}

// openNamed examines what has a name in a directory, and follows no link.
func openNamed(directory int, base string) (*namedFile, error) {
	f := &namedFile{directory: directory, base: base}
	if err := unix.Fstatat(directory, base, &f.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *namedFile) close() {}

// link gives the file another name. Here no call links a descriptor: if another file has come in
// its place meanwhile, that one has a name in the view for a moment.
func (f *namedFile) link(directory int, target string) error {
	if err := unix.Linkat(f.directory, f.base, directory, target, 0); err != nil {
		return err
	}
	var linked unix.Stat_t
	err := unix.Fstatat(directory, target, &linked, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && linked.Dev == f.stat.Dev && linked.Ino == f.stat.Ino {
		return nil
	}
	if err := unix.Unlinkat(directory, target, 0); err != nil {
		return err
	}
	return unix.ENOENT
}
