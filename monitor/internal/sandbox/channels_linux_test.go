// SPDX-License-Identifier: BSD-2-Clause

//go:build linux && amd64

package sandbox

import (
	"testing"

	"shai.dev/monitor/internal/sandbox/plan"
)

// TestChannels: what the sandbox prevents carries nothing, and all would carry something
// without it. Timed channels are open, and how well they work depends on the machine.
func TestChannels(t *testing.T) {
	if !canHideReads() {
		t.Skip("this machine lets nobody make mounts: the time of access is a channel")
	}
	for _, test := range []struct {
		waived plan.Protection
		closed bool
	}{{0, true}, {all | plan.HiddenReads, false}} {
		channels, err := measureChannels(t.Context(), t.TempDir(), 200, test.waived)
		check(t, err)
		for _, channel := range channels {
			t.Logf("waived %#x: %+v", test.waived, channel)
			if !channel.Timed && channel.Closed() != test.closed {
				t.Errorf("waived %#x: %s is closed: %v", test.waived, channel.Name, channel.Closed())
			}
		}
	}
}
