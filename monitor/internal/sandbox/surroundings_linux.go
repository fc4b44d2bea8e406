// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	procSuper     = 0x9fa0
	procRootInode = 1
)

// The context of a notification's caller comes from proc(5): its root, its working
// directory, its descriptors and its own /proc/self.
var _ surroundings = (*request)(nil)

// root implements [surroundings].
func (r *request) root() (int, error) {
	if r.requests.root >= 0 {
		return r.beneathRoot("")
	}
	return r.follow("root")
}

// start implements [surroundings].
func (r *request) start(directory int) (int, error) {
	if directory == unix.AT_FDCWD && r.requests.root >= 0 {
		return r.beneathRoot(r.requests.home)
	}
	if directory == unix.AT_FDCWD {
		return r.follow("cwd")
	}
	start, err := r.follow("fd/" + strconv.Itoa(directory))
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	if err == nil && r.requests.root >= 0 && !isMounted(start) {
		unix.Close(start)
		return -1, errRefused
	}
	return start, err
}

// beneathRoot opens a directory in the root that the monitor keeps for the task.
func (r *request) beneathRoot(name string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	return unix.Openat2(r.requests.root, path.Join(".", name), &how)
}

// isMounted reports whether the monitor finds a directory where its path says. The path of
// a detached mount begins at the mount, and means something else to the monitor.
func isMounted(directory int) bool {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(directory))
	var there, here unix.Stat_t
	return err == nil && unix.Fstat(directory, &there) == nil && unix.Lstat(name, &here) == nil &&
		there.Dev == here.Dev && there.Ino == here.Ino
}

// follow opens one of the caller's jumping links, which the kernel resolves to the
// caller's own file.
func (r *request) follow(link string) (int, error) {
	start, err := unix.Open(r.proc(link), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil && !r.requests.listener.valid(r.ID) {
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

// procfs reports whether a link is on a proc file system, and whether directory is the
// root of that file system.
func procfs(link, directory int) (inProc, inRoot bool) {
	var system unix.Statfs_t
	if unix.Fstatfs(link, &system) != nil {
		return true, false // unknown: treated as a jump, which is refused
	}
	if system.Type != procSuper {
		return false, false
	}
	var stat unix.Stat_t
	return true, unix.Fstat(directory, &stat) == nil && stat.Ino == procRootInode
}

// selfLink returns the target of /proc/self or /proc/thread-self as the caller sees it.
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

// realPath returns the kernel's path of the pinned file.
func (w *walk) realPath() (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(w.current))
}
