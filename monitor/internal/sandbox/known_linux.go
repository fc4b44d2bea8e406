// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// mayKnow implements [surroundings]. The monitor walks with its own rights, so the task would
// learn from an error what the kernel hides from it: names in closed directories, and what other
// processes have open. Who makes such names could tell the task anything.
func (r *request) mayKnow(file int, names, open bool) error {
	if !r.requests.hides {
		return nil
	}
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(file))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(name, "/") {
		return nil // a pipe or a socket, which the task has itself
	}
	if owner, isProcess := plan.ProcessOf(name); isProcess {
		return r.requireProcess(owner)
	}
	permits := r.requests.permits
	given := permits.Given(name)
	leads := permits.Leads(name)
	if given == "" && !leads || permits.InRuntime(name) {
		if err := r.requests.isOwn(name); err != nil {
			return err
		}
	}
	if open || !names && leads {
		return nil
	}
	return r.findsItself(file, name, given, names)
}

// requireProcess refuses what is about another process than the caller.
func (r *request) requireProcess(owner int) error {
	process, err := r.process()
	if err == nil && process != owner {
		return errRefused
	}
	return err
}

// findsItself fails unless the task's user finds a file at its path: from the root, or from the
// hierarchy that the task has been given, however that is reached. With names, it may also search
// the directory.
func (r *request) findsItself(file int, name, given string, names bool) error {
	root, err := r.root()
	if err != nil {
		return err
	}
	defer unix.Close(root)
	start, err := unix.Openat2(root, path.Join(".", given), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(start)
	rest := path.Join(".", strings.TrimPrefix(name, given))
	if names {
		rest += "/."
	}
	var found, pinned unix.Stat_t
	err = asUser(r.requests.userAt(name), func() error {
		descriptor, err := unix.Openat2(start, rest, &unix.OpenHow{Flags: pinFlags,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return err
		}
		defer unix.Close(descriptor)
		return unix.Fstat(descriptor, &found)
	})
	if err == nil {
		err = unix.Fstat(file, &pinned)
	}
	if err == nil && (found.Dev != pinned.Dev || found.Ino != pinned.Ino) {
		return unix.EACCES
	}
	return err
}
