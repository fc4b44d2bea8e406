// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import "syscall"

const (
	accessMode = syscall.O_ACCMODE
	openPath   = 0x200000 // O_PATH
	tempFile   = 0x400000 // __O_TMPFILE without O_DIRECTORY
	// changing flags change a file, or make one, even if it is opened for reading.
	changing = syscall.O_TRUNC | tempFile
)
