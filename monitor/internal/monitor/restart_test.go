// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"testing"
	"time"
)

func TestRestartDelay(t *testing.T) {
	for deaths, want := range map[int]time.Duration{
		1: 0, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second, 7: 32 * time.Second, 8: time.Minute,
		9: time.Minute, 1 << 40: time.Minute,
	} {
		if got := restartDelay(deaths); got != want {
			t.Errorf("after %d deaths %v, want %v", deaths, got, want)
		}
	}
}
