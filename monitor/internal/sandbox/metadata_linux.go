// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// These handlers answer calls that read a file's metadata, and nothing of its content.

// look pins a file for a call that only reads its metadata. An empty path with
// AT_EMPTY_PATH means a descriptor that the task holds: this needs no decision, and look
// returns nil.
func (r *request) look(directory, pathArgument, flags int) (*pinned, error) {
	path := ""
	if address := r.Arguments[pathArgument]; address != 0 || flags&unix.AT_EMPTY_PATH == 0 {
		var err error
		if path, err = r.text(address); err != nil {
			return nil, err
		}
	}
	if path == "" && flags&unix.AT_EMPTY_PATH != 0 {
		return r.held(directory)
	}
	file, err := r.resolve(path, resolution{directory: directory, follow: flags&unix.AT_SYMLINK_NOFOLLOW == 0})
	if err != nil {
		return nil, err
	}
	if err := r.permit(file, unix.O_PATH, false); err != nil {
		file.close()
		return nil, err
	}
	return file, nil
}

// held pins the file that one of the caller's own descriptors refers to.
func (r *request) held(descriptor int) (*pinned, error) {
	link := "fd/" + strconv.Itoa(descriptor)
	if descriptor == unix.AT_FDCWD {
		link = "cwd"
	}
	file, err := unix.Open(r.proc(link), unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, unix.EBADF
	case err != nil:
		return nil, err
	case !r.requests.listener.valid(r.ID):
		unix.Close(file)
		return nil, errGone
	}
	return &pinned{descriptor: file}, nil
}

func (r *request) stat(directory, pathArgument, resultArgument, flags int) error {
	file, err := r.look(directory, pathArgument, flags)
	if err != nil {
		return err
	}
	defer file.close()
	var stat unix.Stat_t // the kernel's own layout on this architecture
	if err := unix.Fstat(file.descriptor, &stat); err != nil {
		return err
	}
	return r.result(r.Arguments[resultArgument], unsafe.Slice((*byte)(unsafe.Pointer(&stat)), unsafe.Sizeof(stat)))
}

func (r *request) statx() error {
	flags := r.descriptor(2)
	file, err := r.look(r.descriptor(0), 1, flags)
	if err != nil {
		return err
	}
	defer file.close()
	var stat unix.Statx_t
	synchronise := flags & (unix.AT_STATX_FORCE_SYNC | unix.AT_STATX_DONT_SYNC)
	if err := unix.Statx(file.descriptor, "", unix.AT_EMPTY_PATH|synchronise, r.descriptor(3), &stat); err != nil {
		return err
	}
	return r.result(r.Arguments[4], unsafe.Slice((*byte)(unsafe.Pointer(&stat)), unsafe.Sizeof(stat)))
}

func (r *request) statfs() error {
	file, err := r.look(unix.AT_FDCWD, 0, 0)
	if err != nil {
		return err
	}
	defer file.close()
	var system unix.Statfs_t
	if err := unix.Fstatfs(file.descriptor, &system); err != nil {
		return err
	}
	return r.result(r.Arguments[1], unsafe.Slice((*byte)(unsafe.Pointer(&system)), unsafe.Sizeof(system)))
}

// sysinfo tells of the machine what does not change: a task would see in its load, free
// memory and number of processes what others do.
func (r *request) sysinfo() error {
	var now unix.Sysinfo_t // the kernel's own layout on this architecture
	if err := unix.Sysinfo(&now); err != nil {
		return err
	}
	shown := unix.Sysinfo_t{Uptime: now.Uptime, Totalram: now.Totalram, Freeram: now.Totalram,
		Totalswap: now.Totalswap, Freeswap: now.Totalswap, Procs: 1, Unit: now.Unit}
	return r.result(r.Arguments[0], unsafe.Slice((*byte)(unsafe.Pointer(&shown)), unsafe.Sizeof(shown)))
}

func (r *request) result(address uint64, data []byte) error {
	if err := r.write(address, data); err != nil {
		return err
	}
	return r.succeed(0)
}

// access gives the same answer as an open would: a file that the backend permits only for
// reading is not writable.
func (r *request) access(directory, pathArgument, mode, flags int) error {
	file, err := r.look(directory, pathArgument, flags)
	if err != nil {
		return err
	}
	defer file.close()
	if mode&unix.W_OK != 0 && r.requests.permits.InRuntime(file.path) {
		return unix.EACCES
	}
	err = asUser(r.requests.userAt(file.path), func() error {
		return unix.Faccessat(file.descriptor, "", uint32(mode), unix.AT_EACCESS|unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return err
	}
	return r.succeed(0)
}

// readlink reads a symbolic link itself. Links beneath the caller's own /proc/<pid> (java
// finds its home by /proc/self/exe) tell the caller nothing new.
func (r *request) readlink(directory, pathArgument, resultArgument int) error {
	path, err := r.text(r.Arguments[pathArgument])
	if err != nil {
		return err
	}
	size := min(r.descriptor(resultArgument+1), pathMax)
	if size <= 0 {
		return unix.EINVAL
	}
	if path == "" {
		return errRefused // the link itself was pinned, by O_PATH
	}
	link, err := r.resolve(path, resolution{directory: directory})
	if err != nil {
		return err
	}
	defer link.close()
	if link.stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		return unix.EINVAL
	}
	target, err := r.permittedTarget(link)
	if err != nil {
		return err
	}
	target = target[:min(len(target), size)]
	if err := r.write(r.Arguments[resultArgument], []byte(target)); err != nil {
		return err
	}
	return r.succeed(len(target))
}

func (r *request) permittedTarget(link *pinned) (string, error) {
	process, err := r.process()
	if err != nil {
		return "", err
	}
	switch {
	case link.path == "/proc/self" || link.path == "/proc/thread-self":
		return r.selfLink(strings.TrimPrefix(link.path, "/proc/"))
	case plan.IsOwnLink(link.path, process):
		return os.Readlink(link.path)
	}
	if err := r.permit(link, unix.O_PATH, false); err != nil {
		return "", err
	}
	return readLink(link.descriptor)
}
