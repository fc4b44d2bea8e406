// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	linksMax      = 40 // symbolic links followed in one path, as in the kernel
	procSuper     = 0x9fa0
	procRootInode = 1
	pinFlags      = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
)

// resolution says how a path is to be resolved.
type resolution struct {
	directory int  // AT_FDCWD or a descriptor of the caller
	follow    bool // whether a symbolic link at the end is followed
	create    bool // whether the last component may be missing
	noLinks   bool // RESOLVE_NO_SYMLINKS
}

// pinned is what a path led to, held by a descriptor so that it stays the same
// whatever happens to the name.
type pinned struct {
	descriptor int    // O_PATH: the file, or the directory that misses name
	path       string // real path, by which it is decided on
	missing    string // the name to be created; empty when the file exists
	stat       unix.Stat_t
}

func (p *pinned) close() { unix.Close(p.descriptor) }

// resolve pins the file that path means to the caller: in its root, from its
// working directory or its descriptor, with its own /proc/self. It walks
// component by component, since the kernel would resolve in the monitor's
// context. Links that jump (/proc/<pid>/fd, cwd, root, exe) are refused.
//
// That a name is missing is answered before anybody is asked whether the task
// may know; existence of names is not protected.
func (r *request) resolve(path string, how resolution) (*pinned, error) {
	if path == "" {
		return nil, unix.ENOENT
	}
	w := &walk{request: r, how: how, rest: components(path)}
	if strings.HasSuffix(path, "/") {
		w.how.follow, w.needDirectory = true, true
	}
	start, err := w.start(path)
	if err != nil {
		return nil, err
	}
	w.current = start
	if err := w.run(); err != nil {
		unix.Close(w.current)
		return nil, err
	}
	return w.result()
}

func components(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// walk is a resolution under way. It owns current.
type walk struct {
	request       *request
	how           resolution
	rest          []string
	current       int
	links         int
	missing       string
	needDirectory bool
}

// start opens where the path begins.
func (w *walk) start(path string) (int, error) {
	switch {
	case path[0] == '/':
		return w.open(w.request.proc("root"))
	case w.how.directory == unix.AT_FDCWD:
		return w.open(w.request.proc("cwd"))
	}
	start, err := w.open(w.request.proc("fd/" + strconv.Itoa(w.how.directory)))
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return start, err
}

// open follows one of the caller's jumping links, which the kernel resolves to
// the caller's own object.
func (w *walk) open(link string) (int, error) {
	start, err := unix.Open(link, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil && !w.request.supervisor.listener.valid(w.request.ID) {
		unix.Close(start)
		return -1, errGone
	}
	return start, err
}

func (w *walk) run() error {
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
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

// replace makes descriptor the current place.
func (w *walk) replace(descriptor int) {
	unix.Close(w.current)
	w.current = descriptor
}

// up goes to the parent directory, but not above the caller's root.
func (w *walk) up() error {
	root, err := w.open(w.request.proc("root"))
	if err != nil {
		return err
	}
	var here, top unix.Stat_t
	err = errors.Join(unix.Fstat(w.current, &here), unix.Fstat(root, &top))
	if err != nil || here.Dev == top.Dev && here.Ino == top.Ino {
		unix.Close(root)
		return err
	}
	unix.Close(root)
	parent, err := unix.Openat(w.current, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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
		target, err := w.target(entry, name)
		unix.Close(entry)
		if err != nil {
			return err
		}
		return w.jump(target)
	}
	w.replace(entry)
	return nil
}

// jump continues with a symbolic link's target.
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
	root, err := w.open(w.request.proc("root"))
	if err == nil {
		w.replace(root)
	}
	return err
}

// target reads a symbolic link as the caller would see it.
func (w *walk) target(link int, name string) (string, error) {
	inProc, inProcRoot := procfs(link, w.current)
	switch {
	case inProcRoot && (name == "self" || name == "thread-self"):
		return w.request.selfLink(name)
	case inProc && !inProcRoot:
		return "", errRefused // /proc/<pid>/fd/3, cwd, root, exe …: a jump, not a path
	}
	return readLink(link)
}

// procfs says whether a link is on a proc file system, and whether directory is
// its root.
func procfs(link, directory int) (inProc, inRoot bool) {
	var system unix.Statfs_t
	if unix.Fstatfs(link, &system) != nil {
		return true, false // unknown: as a jump, which is refused
	}
	if system.Type != procSuper {
		return false, false
	}
	var stat unix.Stat_t
	return true, unix.Fstat(directory, &stat) == nil && stat.Ino == procRootInode
}

// selfLink is what /proc/self or /proc/thread-self is to the caller.
func (r *request) selfLink(name string) (string, error) {
	process, err := r.process()
	if err != nil {
		return "", err
	}
	if name == "self" {
		return strconv.Itoa(process), nil
	}
	return strconv.Itoa(process) + "/task/" + strconv.Itoa(int(r.PID)), nil
}

func readLink(link int) (string, error) {
	buffer := make([]byte, pathMax)
	count, err := unix.Readlinkat(link, "", buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:count]), nil
}

// result gives current away.
func (w *walk) result() (*pinned, error) {
	result := &pinned{descriptor: w.current, missing: w.missing}
	err := unix.Fstat(w.current, &result.stat)
	if err == nil && result.stat.Nlink == 0 && result.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOENT // removed meanwhile; its path would be somebody else's
	}
	if err == nil {
		result.path, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(w.current))
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
