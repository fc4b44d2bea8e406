// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// handlers answer the calls that are not always refused. A handler that succeeds has
// answered the request itself; otherwise it returns the reason.
var handlers map[string]func(*request) error

func init() {
	const here = unix.AT_FDCWD
	handlers = map[string]func(*request) error{
		"open":  func(r *request) error { return r.open(here, 0, r.Arguments[1], r.Arguments[2]) },
		"creat": func(r *request) error { return r.open(here, 0, creating, r.Arguments[1]) },
		"openat": func(r *request) error {
			return r.open(r.descriptor(0), 1, uint64(uint32(r.Arguments[2])), r.Arguments[3])
		},
		"openat2":    (*request).open2,
		"stat":       func(r *request) error { return r.stat(here, 0, 1, 0) },
		"lstat":      func(r *request) error { return r.stat(here, 0, 1, unix.AT_SYMLINK_NOFOLLOW) },
		"newfstatat": func(r *request) error { return r.stat(r.descriptor(0), 1, 2, r.descriptor(3)) },
		"statx":      (*request).statx,
		"sysinfo":    (*request).sysinfo,
		"statfs":     (*request).statfs,
		"access":     func(r *request) error { return r.access(here, 0, r.descriptor(1), 0) },
		"faccessat":  func(r *request) error { return r.access(r.descriptor(0), 1, r.descriptor(2), 0) },
		"faccessat2": func(r *request) error {
			return r.access(r.descriptor(0), 1, r.descriptor(2),
				r.descriptor(3))
		},
		"readlink":        func(r *request) error { return r.readlink(here, 0, 1) },
		"readlinkat":      func(r *request) error { return r.readlink(r.descriptor(0), 1, 2) },
		"execve":          (*request).execute,
		"execveat":        (*request).execute,
		"clone":           (*request).fork,
		"fork":            (*request).fork,
		"vfork":           (*request).fork,
		"accept":          func(*request) error { return errServes },
		"accept4":         func(*request) error { return errServes },
		"write":           (*request).send,
		"writev":          (*request).send,
		"sendto":          (*request).send,
		"fcntl":           (*request).lock,
		"seccomp":         (*request).seal,
		"kill":            (*request).signal,
		"tkill":           (*request).signal,
		"tgkill":          (*request).signal,
		"rt_sigqueueinfo": (*request).signal, "rt_tgsigqueueinfo": (*request).signal,
	}
}

const creating = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC

// execute allows the launcher's exec of the task's program, and no other exec. The call
// may proceed although its path is in memory: the memory is the launcher's, which is this
// same binary, and no code of the task has run yet. Any thread of the launcher may make
// the call: Go's main goroutine need not run on the first thread.
func (r *request) execute() error {
	process, err := r.threadGroup()
	if err != nil {
		return err
	}
	if process == r.requests.task.pid && r.requests.mayExecute.CompareAndSwap(true, false) {
		return r.proceed()
	}
	return errRefused
}

// permit decides on a pinned file for the caller. See [arbiter.permit].
func (r *request) permit(file *pinned, flags int, pin bool) error {
	from, err := r.caller()
	if err != nil {
		return err
	}
	return r.requests.permit(file, flags, pin, from)
}

// open2 handles openat2. Of its restrictions on resolution, only RESOLVE_NO_SYMLINKS and
// RESOLVE_NO_MAGICLINKS are supported. Others are refused, not ignored.
func (r *request) open2() error {
	const known = unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS
	var how [unix.SizeofOpenHow]byte
	if r.Arguments[3] != uint64(len(how)) {
		return unix.E2BIG
	}
	if err := r.read(r.Arguments[2], how[:]); err != nil {
		return err
	}
	flags, mode := binary.LittleEndian.Uint64(how[0:]), binary.LittleEndian.Uint64(how[8:])
	resolve := binary.LittleEndian.Uint64(how[16:])
	if resolve&^known != 0 {
		return errRefused
	}
	if flags>>32 != 0 {
		return unix.EINVAL
	}
	path, err := r.text(r.Arguments[1])
	if err != nil {
		return err
	}
	return r.openPath(r.descriptor(0), path, int(flags), uint32(mode), resolve&unix.RESOLVE_NO_SYMLINKS != 0)
}

func (r *request) open(directory, pathArgument int, flags, mode uint64) error {
	path, err := r.text(r.Arguments[pathArgument])
	if err != nil {
		return err
	}
	return r.openPath(directory, path, int(uint32(flags)), uint32(mode), false)
}

func (r *request) openPath(directory int, path string, flags int, mode uint32, noLinks bool) error {
	if flags&tempFile != 0 {
		return unix.EOPNOTSUPP
	}
	pin := flags&unix.O_PATH != 0
	if pin {
		// The kernel cannot inject O_PATH descriptors. A read-only descriptor can do
		// everything that they can and more, so the decision is about reading.
		flags &= unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	}
	exclusive := flags&unix.O_CREAT != 0 && flags&unix.O_EXCL != 0
	file, err := r.resolve(path, resolution{
		directory: directory, noLinks: noLinks, create: flags&unix.O_CREAT != 0,
		follow: flags&unix.O_NOFOLLOW == 0 && !exclusive,
	})
	if err != nil {
		return err
	}
	defer file.close()
	if err := openable(file, flags, exclusive); err != nil {
		return err
	}
	if err := r.permit(file, flags, pin); err != nil {
		return err
	}
	var opened int
	err = asUser(r.requests.userAt(file.path), func() (err error) {
		opened, err = r.reopen(file, flags, mode)
		return err
	})
	if err == nil && r.requests.root >= 0 && file.missing == "" && file.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		opened, err = listingOf(opened)
	}
	if err != nil {
		return err
	}
	defer unix.Close(opened)
	return r.give(opened, flags&unix.O_CLOEXEC)
}

// reopen opens the pinned file itself, or creates the missing file in the pinned
// directory. It looks nothing up by a name that could have changed in the meantime.
func (r *request) reopen(file *pinned, flags int, mode uint32) (int, error) {
	keep := flags &^ (unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW)
	if file.missing == "" {
		return unix.Open("/proc/self/fd/"+strconv.Itoa(file.descriptor), keep|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	}
	text, err := r.status("Umask")
	if err != nil {
		return -1, err
	}
	mask, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return -1, unix.EACCES
	}
	// O_EXCL, because the decision was about a new file. If another process creates the
	// name first, the task gets an error.
	return unix.Openat(file.descriptor, file.missing,
		keep|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode&0o7777&^uint32(mask))
}

// give injects a descriptor at the lowest free number and returns that number from the
// call, in one step. If this fails (the task has too many open files, or has ended), the
// call fails, by the task's own doing. The caller closes its copy in both cases.
func (r *request) give(descriptor, closeOnExec int) error {
	errno := r.requests.listener.inject(injection{ID: r.ID, Flags: unix.SECCOMP_ADDFD_FLAG_SEND,
		Source: uint32(descriptor), NewFlags: uint32(closeOnExec)})
	switch errno {
	case 0, unix.ENOENT:
	default:
		r.fail(errno)
	}
	return nil
}
