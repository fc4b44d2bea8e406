// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	linksMax = 40   // symbolic links followed in one path, as in the kernel
	stepsMax = 256  // components of one path and of the links in it
	pathMax  = 4096 // with NUL, as in the kernel
	pinFlags = openPath | unix.O_NOFOLLOW | unix.O_CLOEXEC

	everybody = unix.S_IXUSR | unix.S_IXGRP | unix.S_IXOTH // may search a directory
)

// surroundings are the context in which a path is resolved: the root, the working
// directory and /proc/self of the process that asks. The caller closes the descriptors
// that the methods return.
type surroundings interface {
	root() (int, error)
	// start opens the working directory (AT_FDCWD) or a directory of the process.
	start(directory int) (int, error)
	// target returns a symbolic link's target as the process sees it.
	target(link, directory int, name string) (string, error)
	// mayKnow fails unless the process may know that a file exists; with names, which names the
	// directory has. open says that everybody may search all directories that led to it, which
	// are beneath the root.
	mayKnow(file int, names, open bool) error
}

// resolution says how a path is to be resolved.
type resolution struct {
	directory int  // AT_FDCWD or a directory of the process that asks
	follow    bool // whether a symbolic link at the end is followed
	create    bool // whether the last component may be missing
	noLinks   bool // RESOLVE_NO_SYMLINKS
}

// pinned is the file that a path led to. The descriptor keeps it the same, whatever
// happens to the name.
type pinned struct {
	descriptor int    // O_PATH: the file, or the directory in which the name is missing
	path       string // real path, which the decision is about
	missing    string // the name to be created; empty when the file exists
	stat       unix.Stat_t
}

func (p *pinned) close() { unix.Close(p.descriptor) }

// resolve pins the file that path means in the surroundings of the process that asks.
// It walks component by component, since the kernel would resolve in the monitor's
// context. Links that jump (/proc/<pid>/fd, cwd, root, exe) are refused.
//
// Each component costs the monitor several system calls, and a task chooses the path: with
// links that have long targets, one call of the task would cost 80,000 steps. A walk of
// more than stepsMax components ends with ENAMETOOLONG.
//
// Nobody has decided on the file yet. So where the walk ends, and where it leaves a directory by
// ".." or a link, resolve fails unless the task may know what has been found, or not found.
func resolve(from surroundings, path string, how resolution) (*pinned, error) {
	if path == "" {
		return nil, unix.ENOENT
	}
	w := &walk{from: from, how: how, rest: components(path), parent: -1, root: -1}
	defer w.leave()
	if strings.HasSuffix(path, "/") {
		w.how.follow, w.needDirectory = true, true
	}
	var err error
	if path[0] == '/' {
		err = w.beginAtRoot()
	} else {
		w.current, err = from.start(how.directory)
	}
	if err != nil {
		return nil, err
	}
	err = w.run()
	if err = w.disclosable(err); err != nil {
		unix.Close(w.current)
		return nil, err
	}
	return w.result()
}

func components(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// walk is a resolution in progress. It owns current, parent and root.
type walk struct {
	from          surroundings
	how           resolution
	rest          []string
	current       int
	parent        int    // the directory of current, -1 unless current is a file
	name          string // of current in parent
	root          int    // the root of the process that asks, -1 until it is needed
	links, steps  int
	missing       string
	needDirectory bool
	open          bool // everybody may search current and all directories above it
}

func (w *walk) run() error {
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		if w.steps++; w.steps > stepsMax {
			return unix.ENAMETOOLONG
		}
		var err error
		switch name {
		case ".":
			err = w.requireDirectory()
		case "..":
			err = w.up()
		default:
			err = w.enter(name)
		}
		if err != nil {
			return err
		}
	}
	if w.needDirectory && w.missing == "" {
		return w.requireDirectory()
	}
	return nil
}

// disclosable returns the error with which the walk has ended, or another one if the process may
// not know where that was.
func (w *walk) disclosable(err error) error {
	var why refusal
	if errors.As(err, &why) || errors.Is(err, errGone) || exhausted(err) {
		return err
	}
	isDirectory := w.requireDirectory() == nil
	if unknown := w.from.mayKnow(w.current, isDirectory && (err != nil || w.missing != ""), w.open); unknown != nil {
		return unknown
	}
	return err
}

func (w *walk) requireDirectory() error {
	var stat unix.Stat_t
	if err := unix.Fstat(w.current, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	return nil
}

// needRoot opens the root once for the whole walk.
func (w *walk) needRoot() (err error) {
	if w.root < 0 {
		w.root, err = w.from.root()
	}
	return err
}

// beginAtRoot makes the root the current place, of which there is none.
func (w *walk) beginAtRoot() (err error) {
	w.current = -1
	if err = w.needRoot(); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err = unix.Fstat(w.root, &stat); err != nil {
		return err
	}
	w.open = stat.Mode&everybody == everybody
	w.current, err = unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
	return err
}

// replace makes descriptor the current place.
func (w *walk) replace(descriptor int) {
	unix.Close(w.current)
	w.current = descriptor
}

// up goes to the parent directory, but not above the caller's root.
func (w *walk) up() error {
	if err := w.needRoot(); err != nil {
		return err
	}
	var here, top unix.Stat_t
	err := errors.Join(unix.Fstat(w.current, &here), unix.Fstat(w.root, &top))
	if err != nil || here.Dev == top.Dev && here.Ino == top.Ino {
		return err
	}
	if err := w.from.mayKnow(w.current, false, w.open); err != nil {
		return err
	}
	parent, err := unix.Openat(w.current, "..", openPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		w.replace(parent)
	}
	return err
}

// enter goes to a named entry of the current directory.
func (w *walk) enter(name string) error {
	last := len(w.rest) == 0
	entry, err := unix.Openat(w.current, name, pinFlags, 0)
	if errors.Is(err, unix.ENOENT) && last && w.how.create && !w.needDirectory {
		w.missing = name
		return w.requireDirectory()
	}
	if err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(entry, &stat); err != nil {
		unix.Close(entry)
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK && (!last || w.how.follow) {
		defer unix.Close(entry)
		if err := w.from.mayKnow(entry, false, w.open); err != nil {
			return err
		}
		target, err := w.from.target(entry, w.current, name)
		if err != nil {
			return err
		}
		return w.jump(target)
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		w.replace(entry)
		w.open = w.open && stat.Mode&everybody == everybody
		return nil
	}
	// A file has nothing beneath it: the walk ends here, or with ENOTDIR.
	w.leaveParent()
	w.parent, w.name, w.current = w.current, name, entry
	return nil
}

func (w *walk) leave() {
	w.leaveParent()
	if w.root >= 0 {
		unix.Close(w.root)
	}
}

func (w *walk) leaveParent() {
	if w.parent >= 0 {
		unix.Close(w.parent)
		w.parent = -1
	}
}

// jump continues the walk with a symbolic link's target.
func (w *walk) jump(target string) error {
	w.links++
	switch {
	case w.how.noLinks || w.links > linksMax:
		return unix.ELOOP
	case target == "":
		return unix.ENOENT
	}
	if len(w.rest) == 0 && strings.HasSuffix(target, "/") {
		w.needDirectory = true
	}
	w.rest = append(components(target), w.rest...)
	if target[0] != '/' {
		return nil
	}
	unix.Close(w.current)
	return w.beginAtRoot()
}

// readLink reads a pinned symbolic link.
func readLink(link int) (string, error) {
	buffer := make([]byte, pathMax)
	count, err := unix.Readlinkat(link, "", buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:count]), nil
}

// result passes the ownership of current to the caller.
func (w *walk) result() (*pinned, error) {
	result := &pinned{descriptor: w.current, missing: w.missing}
	err := unix.Fstat(w.current, &result.stat)
	if err == nil && result.stat.Nlink == 0 && result.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOENT // removed in the meantime; its path may mean another file now
	}
	if err == nil {
		result.path, err = w.realPath()
	}
	if err != nil {
		unix.Close(w.current)
		return nil, err
	}
	if w.missing != "" {
		result.path = strings.TrimSuffix(result.path, "/") + "/" + w.missing
	}
	return result, nil
}
