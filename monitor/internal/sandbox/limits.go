// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"

	"shai.dev/monitor/internal/sandbox/plan"
)

// takeLimits sets the limits of this process. It must be the last step before the program
// is executed: the launcher's own memory may already be above the limit.
func takeLimits(l plan.Limits) error {
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
