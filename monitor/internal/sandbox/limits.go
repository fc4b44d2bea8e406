// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// take limits this process, which needs nothing any more but to execute the program:
// the launcher's own memory may be above the limit already.
func (l Limits) take() error {
	for _, one := range []struct {
		name     string
		resource int
		limit    uint64
	}{
		{"memory", memoryLimit, l.Memory},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
	} {
		if one.limit == 0 {
			continue
		}
		if err := setLimit(one.resource, one.limit); err != nil {
			return fmt.Errorf("limit %s to %d (is the monitor's own limit lower?): %w", one.name, one.limit, err)
		}
	}
	return nil
}
