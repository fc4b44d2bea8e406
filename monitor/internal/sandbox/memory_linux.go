// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// errGone says that the caller of a request has died or no longer waits. There is nobody
// to answer.
var errGone = errors.New("the caller is gone")

// gone tells a caller that is gone from one about whom the monitor cannot ask the kernel: that one
// waits for an answer.
func gone(err error) error {
	if exhausted(err) {
		return err
	}
	return errGone
}

// text reads a NUL-terminated path from the caller's memory, once: whatever the
// caller's other threads write there afterwards is never looked at.
//
// The notification's validity is checked after reading. If it is still valid,
// the caller waited all the time, so its number was not given to another
// process and the bytes are its own.
func (r *request) text(address uint64) (string, error) {
	path := make([]byte, 0, 256)
	for len(path) < pathMax {
		position := address + uint64(len(path))
		size := min(pageSize-int(position%pageSize), pathMax-len(path))
		chunk := make([]byte, size)
		if err := r.read(position, chunk); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(chunk, 0); end >= 0 {
			return string(append(path, chunk[:end]...)), nil
		}
		path = append(path, chunk...)
	}
	return "", unix.ENAMETOOLONG
}

// read fills data from the caller's memory. It returns EFAULT if the memory cannot be
// read, and errGone if the caller has gone.
func (r *request) read(address uint64, data []byte) error {
	return r.transferred(readMemory(int(r.PID), address, data))
}

// readMemory fills data from a process's memory. The caller sees to it that the number is
// still the process's.
func readMemory(process int, address uint64, data []byte) error {
	local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(data)}}
	count, err := unix.ProcessVMReadv(process, local, remote, 0)
	if err == nil && count != len(data) {
		err = unix.EFAULT
	}
	return err
}

// write copies data into the caller's memory. Between the check of validity and the write
// the caller can only be killed. The write would go to another process only if its number
// was reused within that instant, but the kernel hands numbers out in turn.
func (r *request) write(address uint64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if !r.requests.listener.valid(r.ID) {
		return errGone
	}
	local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(data)}}
	count, err := unix.ProcessVMWritev(int(r.PID), local, remote, 0)
	if err == nil && count != len(data) {
		err = unix.EFAULT
	}
	return r.transferred(err)
}

func (r *request) transferred(err error) error {
	if !r.requests.listener.valid(r.ID) {
		return errGone
	}
	switch {
	case errors.Is(err, unix.EPERM):
		// The task's memory cannot be read (it is not dumpable). Without the path, no
		// decision is possible.
		return unix.EACCES
	case err != nil:
		return unix.EFAULT
	}
	return nil
}

// status returns a field of the calling thread's /proc/<tid>/status.
func (r *request) status(field string) (string, error) {
	text, err := os.ReadFile(r.proc("status"))
	if err != nil {
		return "", gone(err)
	}
	_, rest, found := bytes.Cut(text, []byte("\n"+field+":\t"))
	if !found || !r.requests.listener.valid(r.ID) {
		return "", errGone
	}
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(value), nil
}
