// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux && !freebsd

package sandbox

import "syscall"

// Nothing is opened for a task here; what decides about it compiles all the same.
const (
	accessMode = syscall.O_ACCMODE
	openPath   = 1 << 30
	changing   = syscall.O_TRUNC
)
