// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux && !freebsd

package sandbox

import "syscall"

// No files are opened for tasks on this system, but the code that decides about them
// compiles everywhere.
const (
	accessMode = syscall.O_ACCMODE
	openPath   = 1 << 30
	changing   = syscall.O_TRUNC
)
