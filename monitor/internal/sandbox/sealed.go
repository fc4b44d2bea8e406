// SPDX-License-Identifier: BSD-2-Clause

//go:build linux || freebsd

package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealSize are F_SEAL_SEAL, F_SEAL_SHRINK and F_SEAL_GROW, the same on both systems. With
// them, a process that has mapped the file can always read all of it.
const sealSize = 1 | 2 | 4

// SealedMemory makes a file of zeros that exists in memory only. No process can change
// its size, not even one that may write to it. Nobody but the superuser can open it anew:
// a process of the same user would find it in /proc. The caller closes it.
func SealedMemory(name string, size int) (*os.File, error) {
	file, err := memory(name)
	if err != nil {
		return nil, err
	}
	if err = file.Truncate(int64(size)); err == nil {
		_, err = unix.FcntlInt(file.Fd(), addSeals, sealSize)
	}
	if err == nil {
		err = file.Chmod(0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("seal memory file %s: %w", name, err)
	}
	return file, nil
}
