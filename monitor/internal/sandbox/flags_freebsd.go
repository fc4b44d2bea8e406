// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import "syscall"

const (
	accessMode = syscall.O_ACCMODE
	openPath   = 0x400000  // O_PATH
	emptyPath  = 0x2000000 // O_EMPTY_PATH
	// changing flags change a file even if it is opened for reading.
	changing = syscall.O_TRUNC
)
