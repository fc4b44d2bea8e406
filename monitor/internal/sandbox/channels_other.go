// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux || !amd64

package sandbox

import (
	"context"
	"fmt"
	"runtime"

	"shai.dev/monitor/internal/sandbox/plan"
)

// MeasureChannels is for Linux only: its probes use what the sandbox there has to prevent.
func MeasureChannels(context.Context, string, int) ([]Channel, error) {
	return nil, fmt.Errorf("measure channels: the probes do not run on %s/%s: %w", runtime.GOOS, runtime.GOARCH,
		plan.ErrUnsupported)
}
