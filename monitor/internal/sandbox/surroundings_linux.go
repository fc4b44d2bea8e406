// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	procSuper     = 0x9fa0
	procRootInode = 1
)

// A notification's caller is known by proc(5): its root, its working directory, its
// descriptors, its own /proc/self.
var _ surroundings = (*request)(nil)

// root implements [surroundings].
func (r *request) root() (int, error) { return r.follow("root") }

// start implements [surroundings].
func (r *request) start(directory int) (int, error) {
	if directory == unix.AT_FDCWD {
		return r.follow("cwd")
	}
	start, err := r.follow("fd/" + strconv.Itoa(directory))
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return start, err
}

// follow opens one of the caller's jumping links, which the kernel resolves to the
// caller's own object.
func (r *request) follow(link string) (int, error) {
	start, err := unix.Open(r.proc(link), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil && !r.supervisor.listener.valid(r.ID) {
		unix.Close(start)
		return -1, errGone
	}
	return start, err
}

// target implements [surroundings].
func (r *request) target(link, directory int, name string) (string, error) {
	inProc, inProcRoot := procfs(link, directory)
	switch {
	case inProcRoot && (name == "self" || name == "thread-self"):
		return r.selfLink(name)
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

// realPath is the path by which the kernel knows what was pinned.
func (w *walk) realPath() (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(w.current))
}
