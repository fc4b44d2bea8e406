// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// memory makes a file that exists in memory only; the caller closes it.
func memory(name string) (*os.File, error) {
	number, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file %s: %w", name, err)
	}
	return os.NewFile(uintptr(number), name), nil
}

// ViewOf returns a descriptor of the directory of documents, beneath which they are opened for
// sessions. Where the monitor can make mounts, reading these documents changes no time of access.
// With a user that is not nil, documents of its Files are its own. The caller closes it.
func ViewOf(path string, user *plan.User) (*os.File, error) {
	open := func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) }
	if mountsAvailable() {
		open = func() (int, error) { return mountOf(path, documentAttributes) }
	}
	number, err := open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	view := os.NewFile(uintptr(number), path)
	if user == nil || user.Files == 0 || !mountsAvailable() {
		return view, nil
	}
	err = withOwnerNamespace(*user, func(namespace int) error { return setOwners(number, namespace) })
	if err != nil {
		view.Close()
		return nil, fmt.Errorf("map the owners of documents for a task with sessions: %w", err)
	}
	return view, nil
}

// OpenDocument opens a file beneath the directory of [ViewOf] for reading.
func OpenDocument(view *os.File, name string) (*os.File, error) {
	number, err := unix.Openat(int(view.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(number), name), nil
}

// MessagePair makes the two ends of a socket that keeps the boundaries of records, up to
// wire.MaxRecord bytes. Both are blocking.
func MessagePair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
}

// OneWay limits reader to reading and writer to writing, in every process that they are
// passed to. On Linux there is nothing to do: pipes work in one direction, and sockets
// are shut down in the other.
func OneWay(_, _ *os.File) error { return nil }

// ParentOf returns the parent of a process, from proc(5).
func ParentOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("find the parent of process %d: %w", pid, err)
	}
	// The second field, the program's name in parentheses, may contain any characters.
	var state string
	var parent int
	if _, err := fmt.Sscanf(string(text[bytes.LastIndexByte(text, ')')+1:]), "%s %d", &state, &parent); err != nil {
		return 0, fmt.Errorf("find the parent of process %d: %w", pid, err)
	}
	return parent, nil
}
