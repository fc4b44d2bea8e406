// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryLimit limits private writable memory.
const memoryLimit = unix.RLIMIT_DATA

// setLimit does not use unix.Prlimit: syscall.Exec would then restore the limit of open
// files that the Go runtime found at its start.
func setLimit(resource int, limit uint64) error {
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit})
}
