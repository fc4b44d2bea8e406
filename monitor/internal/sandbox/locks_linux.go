// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// errLocks is the reason for which a file is not locked.
const errLocks = refusal("a task locks only files that it has opened for writing and may also read: others would see the lock")

// lock sets a record lock for the caller (fcntl). A lock tells everybody who may try one
// on the file that the caller has it open. So the file must be open for writing, in a
// directory that the task may read: whoever sees the lock could as well be told by the
// file. Only the kernel's look at the descriptor that is locked counts, so the monitor
// takes the descriptor and locks it itself. The lock belongs to the open file
// description, as with F_OFD_SETLK, and ends when the task closes it. No call waits for a
// lock: one that would fails with EAGAIN.
func (r *request) lock() error {
	if !plan.SetsLock(uint32(r.Arguments[1])) {
		return errRefused
	}
	process, err := r.process()
	if err != nil {
		return err
	}
	var area unix.Flock_t // the kernel's own layout on this architecture
	if err := r.read(r.Arguments[2], unsafe.Slice((*byte)(unsafe.Pointer(&area)), unsafe.Sizeof(area))); err != nil {
		return err
	}
	area.Pid = 0 // as F_OFD_SETLK requires
	file, err := r.take(process, r.descriptor(0))
	if err != nil {
		return err
	}
	err = r.requests.lock(file, &area)
	unix.Close(file) // before the answer: the lock is to end when the task closes it
	if err != nil {
		return err
	}
	return r.succeed(0)
}

func (s *requests) lock(file int, area *unix.Flock_t) error {
	if !s.lockable(file) {
		return errLocks
	}
	return unix.FcntlFlock(uintptr(file), unix.F_OFD_SETLK, area)
}

// take returns the caller's own open file description.
func (r *request) take(process, descriptor int) (int, error) {
	handle, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return -1, gone(err)
	}
	defer unix.Close(handle)
	file, err := unix.PidfdGetfd(handle, descriptor, 0)
	if !r.requests.listener.valid(r.ID) {
		if err == nil {
			unix.Close(file)
		}
		return -1, errGone
	}
	if errors.Is(err, unix.EPERM) {
		return -1, unix.EACCES // as for memory that cannot be read
	}
	return file, err
}

// lockable reports whether the task holds the file open for writing and may read what is
// in its directory.
func (s *requests) lockable(file int) bool {
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(file), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_PATH != 0 || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return false
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(file))
	return err == nil && s.permits.MayLock(path)
}
