// SPDX-License-Identifier: BSD-2-Clause

// Package typedfile writes the files of typed conduits, which only the monitor writes: each
// write whole or not at all, through no symbolic link, and to no file that has a second name.
package typedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// unfinished is what the name of a file that is being written begins with.
const unfinished = ".shai-new-"

// mode of files that are made: tasks read them with their group, and write none.
const (
	fileMode      = 0o640
	directoryMode = 0o750
)

const noLink = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// ErrName is returned for a name that no file of a conduit has.
var ErrName = errors.New("no conduit's file has such a name")

// File is the file of one conduit, which may not exist yet. The caller closes it. It is not safe
// for concurrent use: who writes a conduit excludes others meanwhile.
type File struct {
	directory *os.File
	base      string
	group     int // of files that are made; -1: the monitor's

	file   *os.File // nil if there is none
	length int64
}

// Open opens the file of a conduit, beneath a directory. Directories on the way that are missing
// are made, for the group.
func Open(root, conduit string, group int) (*File, error) {
	if err := check(conduit); err != nil {
		return nil, err
	}
	directory, err := openDirectory(root, strings.TrimPrefix(path.Dir(conduit), "/"), group)
	if err != nil {
		return nil, err
	}
	f := &File{directory: directory, base: path.Base(conduit), group: group}
	if err := f.open(); err != nil {
		directory.Close()
		return nil, err
	}
	return f, nil
}

// Read returns what the file of a conduit contains, and makes nothing: nothing if there is none.
func Read(root, conduit string) ([]byte, error) {
	if err := check(conduit); err != nil {
		return nil, err
	}
	directory, err := openDirectory(root, strings.TrimPrefix(path.Dir(conduit), "/"), none)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &File{directory: directory, base: path.Base(conduit)}
	defer f.Close()
	if err := f.open(); err != nil {
		return nil, err
	}
	return f.Read(0)
}

func check(conduit string) error {
	if !strings.HasPrefix(conduit, "/") || path.Clean(conduit) != conduit || conduit == "/" ||
		IsUnfinished(conduit) {
		return fmt.Errorf("%w: %q", ErrName, conduit)
	}
	return nil
}

// IsUnfinished reports whether a name is that of a file which is being written, and of no conduit.
func IsUnfinished(conduit string) bool { return strings.HasPrefix(path.Base(conduit), unfinished) }

// none in the place of a group says that no directory is made.
const none = -2

// openDirectory opens a directory beneath another one, name by name.
func openDirectory(root, relative string, group int) (*os.File, error) {
	current, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	for name := range strings.SplitSeq(relative, "/") {
		if name == "" {
			continue // the conduit is directly beneath the root
		}
		next, err := enter(current, name, group)
		unix.Close(current)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: relative, Err: err}
		}
		current = next
	}
	return os.NewFile(uintptr(current), "/"+relative), nil
}

func enter(parent int, name string, group int) (int, error) {
	const flags = noLink | unix.O_DIRECTORY | unix.O_RDONLY
	next, err := unix.Openat(parent, name, flags, 0)
	if !errors.Is(err, unix.ENOENT) || group == none {
		return next, err
	}
	if err := unix.Mkdirat(parent, name, 0o700); err != nil {
		return -1, err
	}
	if next, err = unix.Openat(parent, name, flags, 0); err != nil {
		return -1, err
	}
	if err := give(next, group, directoryMode); err != nil {
		unix.Close(next)
		return -1, err
	}
	return next, nil
}

// give lets a group read what was just made.
func give(number, group int, mode uint32) error {
	if group < 0 {
		return nil
	}
	return errors.Join(unix.Fchown(number, -1, group), unix.Fchmod(number, mode))
}

// open opens the file itself, if there is one.
func (f *File) open() error {
	number, err := unix.Openat(int(f.directory.Fd()), f.base, noLink|unix.O_RDWR, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return f.failed("open", err)
	}
	return f.take(number)
}

// take takes over a descriptor of the file.
func (f *File) take(number int) error {
	file := os.NewFile(uintptr(number), f.base)
	var info unix.Stat_t
	err := unix.Fstat(number, &info)
	switch {
	case err != nil:
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("it is no regular file")
	case info.Nlink != 1:
		err = errors.New("it has a second name (a hard link), by which it could be written; remove one of the names")
	}
	if err != nil {
		file.Close()
		return f.failed("open", err)
	}
	f.file, f.length = file, info.Size
	return nil
}

func (f *File) failed(what string, err error) error {
	return &fs.PathError{Op: what, Path: path.Join(f.directory.Name(), f.base), Err: err}
}

// Close closes the file.
func (f *File) Close() {
	if f.file != nil {
		f.file.Close()
	}
	f.directory.Close()
}

// Length returns the file's length in bytes, 0 if there is none.
func (f *File) Length() int64 { return f.length }

// Read reads the file from an offset to its end.
func (f *File) Read(from int64) ([]byte, error) {
	if f.file == nil || from >= f.length {
		return nil, nil
	}
	text, err := io.ReadAll(io.NewSectionReader(f.file, from, f.length-from))
	if err != nil {
		return nil, f.failed("read", err)
	}
	return text, nil
}

// Append adds content at the end, durably. After an error the file is as long as before; if that
// fails, too, the error says so, and the next Cut mends it.
func (f *File) Append(content []byte) error {
	made := f.file == nil
	if made {
		if err := f.create(); err != nil {
			return err
		}
	}
	n, err := f.file.WriteAt(content, f.length)
	if err == nil && n < len(content) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err == nil && made {
		err = f.directory.Sync()
	}
	if err != nil {
		return errors.Join(f.failed("write", err), f.Cut(f.length))
	}
	f.length += int64(len(content))
	return nil
}

// create makes an empty file.
func (f *File) create() error {
	number, err := unix.Openat(int(f.directory.Fd()), f.base, noLink|unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return f.failed("make", err)
	}
	if err := give(number, f.group, fileMode); err != nil {
		unix.Close(number)
		return f.failed("make", err)
	}
	return f.take(number)
}

// Cut removes everything beyond a length, durably.
func (f *File) Cut(length int64) error {
	if f.file == nil {
		return nil
	}
	if err := f.file.Truncate(length); err != nil {
		return f.failed("shorten", err)
	}
	if err := f.file.Sync(); err != nil {
		return f.failed("shorten", err)
	}
	f.length = length
	return nil
}

// Replace puts content in the place of the file, durably and in one step: also after a crash the
// file is the one or the other.
func (f *File) Replace(content []byte) error {
	name := unfinished + f.base
	directory := int(f.directory.Fd())
	if err := unix.Unlinkat(directory, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return f.failed("write", err)
	}
	number, err := unix.Openat(directory, name, noLink|unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return f.failed("write", err)
	}
	next := os.NewFile(uintptr(number), name)
	defer next.Close()
	_, err = next.Write(content)
	if err == nil {
		err = f.sameRights(number)
	}
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = unix.Renameat(directory, name, directory, f.base)
	}
	if err != nil {
		return errors.Join(f.failed("write", err), unix.Unlinkat(directory, name, 0))
	}
	f.length = int64(len(content))
	if err := f.directory.Sync(); err != nil {
		return f.failed("write", err)
	}
	return nil
}

// sameRights gives a new file the owner and the mode of the one that it replaces.
func (f *File) sameRights(number int) error {
	if f.file == nil {
		return give(number, f.group, fileMode)
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(f.file.Fd()), &info); err != nil {
		return err
	}
	return errors.Join(unix.Fchown(number, int(info.Uid), int(info.Gid)),
		unix.Fchmod(number, uint32(info.Mode)&0o777))
}
