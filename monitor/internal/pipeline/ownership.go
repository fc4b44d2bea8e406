// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

const (
	noLink      = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	noLinkToDir = noLink | unix.O_DIRECTORY | unix.O_RDONLY
)

// makeBeneath opens a directory beneath another one, name by name and through no symbolic
// link. It makes missing directories. The caller closes the result.
func makeBeneath(root, relative string) (directory *os.File, made bool, err error) {
	current, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	for name := range strings.SplitSeq(relative, "/") {
		next, err := unix.Openat(current, name, noLinkToDir, 0)
		made = false
		if errors.Is(err, unix.ENOENT) {
			made = true
			if err = unix.Mkdirat(current, name, 0o700); err == nil {
				next, err = unix.Openat(current, name, noLinkToDir, 0)
			}
		}
		unix.Close(current)
		if err != nil {
			return nil, false, &fs.PathError{Op: "open", Path: root + "/" + relative, Err: err}
		}
		current = next
	}
	return os.NewFile(uintptr(current), root+"/"+relative), made, nil
}

// own makes a user the owner of a directory and its content. It skips the content if the
// directory already belongs to the user. It skips files with several names: they may be
// documents, or belong to somebody who only has a name for them here.
func own(directory *os.File, user plan.User) error {
	var info unix.Stat_t
	if err := unix.Fstat(int(directory.Fd()), &info); err != nil {
		return err
	}
	if info.Uid == user.ID && info.Gid == user.Group {
		return nil
	}
	entries, err := directory.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ownEntry(directory, entry, user); err != nil {
			return err
		}
	}
	// The directory itself comes last: if own is interrupted, the next call does it all
	// again. Files that others make in the directory get its group.
	err = unix.Fchown(int(directory.Fd()), int(user.ID), int(user.Group))
	return errors.Join(err, unix.Fchmod(int(directory.Fd()), uint32(info.Mode)&0o777|0o770|unix.S_ISGID))
}

func ownEntry(directory *os.File, entry os.DirEntry, user plan.User) error {
	if !entry.IsDir() && !entry.Type().IsRegular() {
		return nil
	}
	number, err := unix.Openat(int(directory.Fd()), entry.Name(), noLink|unix.O_RDONLY, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) {
		return nil // removed, or replaced by a symbolic link
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: directory.Name() + "/" + entry.Name(), Err: err}
	}
	file := os.NewFile(uintptr(number), directory.Name()+"/"+entry.Name())
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(number, &info); err != nil {
		return err
	}
	switch {
	case info.Mode&unix.S_IFMT == unix.S_IFDIR:
		return own(file, user)
	case info.Mode&unix.S_IFMT == unix.S_IFREG && info.Nlink == 1:
		return unix.Fchown(number, int(user.ID), int(user.Group))
	}
	return nil
}

// giveDirectories makes a directory, and the directories beneath it, readable for a
// user's group if they are not, through no symbolic link. Files that are made in them get
// the group.
func giveDirectories(directory *os.File, user plan.User) error {
	var info unix.Stat_t
	number := int(directory.Fd())
	if err := unix.Fstat(number, &info); err != nil {
		return err
	}
	if mode := uint32(info.Mode); !user.Permits(info.Uid, info.Gid, mode, mayList) {
		err := errors.Join(unix.Fchown(number, -1, int(user.Group)), unix.Fchmod(number, mode&0o777|unix.S_ISGID|0o050))
		if err != nil {
			return &fs.PathError{Op: "give to the group", Path: directory.Name(), Err: err}
		}
	}
	entries, err := directory.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := giveDirectory(directory, entry.Name(), user); err != nil {
			return err
		}
	}
	return nil
}

func giveDirectory(parent *os.File, name string, user plan.User) error {
	path := parent.Name() + "/" + name
	number, err := unix.Openat(int(parent.Fd()), name, noLinkToDir, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil // removed, or replaced
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	directory := os.NewFile(uintptr(number), path)
	defer directory.Close()
	return giveDirectories(directory, user)
}
