// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

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

// take limits this process, which needs nothing any more but to execute the program:
// the launcher's own memory may be above the limit already.
func (l Limits) take() error {
	for _, one := range []struct {
		name     string
		resource int
		limit    uint64
	}{
		{"memory", unix.RLIMIT_DATA, l.Memory},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
	} {
		if one.limit == 0 {
			continue
		}
		// Not unix.Prlimit: syscall.Exec would put the limit of open files back that
		// the Go runtime found at its start.
		if err := syscall.Setrlimit(one.resource, &syscall.Rlimit{Cur: one.limit, Max: one.limit}); err != nil {
			return fmt.Errorf("limit %s to %d (is the monitor's own limit lower?): %w", one.name, one.limit, err)
		}
	}
	return nil
}
