// SPDX-License-Identifier: BSD-2-Clause

//go:build !freebsd && !(linux && amd64)

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// Functions that only running tasks need return ErrUnsupported, as Start does.

func withoutTasks() error {
	return fmt.Errorf("%s runs no tasks: %w", runtime.GOOS, plan.ErrUnsupported)
}

// ViewOf returns a descriptor of a directory for a session; the caller closes it.
func ViewOf(path string, _ *plan.User) (*os.File, error) { return os.Open(path) }

// OpenDocument opens a file beneath the directory of [ViewOf] for reading.
func OpenDocument(view *os.File, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(view.Name(), name), unix.O_RDONLY|unix.O_NOFOLLOW, 0)
}

// MessagePair makes the two ends of a socket that keeps the boundaries of records.
func MessagePair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
}

// OneWay sees to it that reader is only read and writer is only written.
func OneWay(_, _ *os.File) error { return nil }

// ParentOf returns the parent of a process.
func ParentOf(int) (int, error) { return 0, withoutTasks() }
