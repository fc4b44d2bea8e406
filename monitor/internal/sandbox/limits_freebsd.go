// SPDX-License-Identifier: BSD-2-Clause

package sandbox

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryLimit limits all mapped memory: FreeBSD does not count private memory from
// mmap(2) as data.
const memoryLimit = unix.RLIMIT_AS

func setLimit(resource int, limit uint64) error {
	value := int64(min(limit, math.MaxInt64))
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
}
