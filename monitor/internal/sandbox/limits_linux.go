// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryLimit is about private writable memory.
const memoryLimit = unix.RLIMIT_DATA

// prepare takes away for good what would let the program raise its limits again.
func (l Limits) prepare() error {
	if l == (Limits{}) {
		return nil
	}
	// Without privilege there is none to drop.
	err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("drop the privilege to raise limits: %w", err)
	}
	return nil
}

// setLimit is not unix.Prlimit: syscall.Exec would put the limit of open files back that
// the Go runtime found at its start.
func setLimit(resource int, limit uint64) error {
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit})
}
