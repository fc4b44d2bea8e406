// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever a worker says, the session's time limits what is counted, however short it was.
func TestCountsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lasted := time.Duration(rapid.OneOf(rapid.Int64Range(int64(-time.Minute), int64(time.Hour)),
			rapid.Int64Range(0, int64(time.Second))).Draw(t, "lasted"))
		said := rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.Uint64()).Draw(t, "said")
		limit := nativeOpensAtOnce + uint64(max(lasted, 0).Nanoseconds())*nativeOpensPerSecond/uint64(time.Second)
		got := credibleOpens(said, lasted)
		if got > limit || said <= limit && got != said {
			t.Fatalf("%d in %v, with %d said and a limit of %d", got, lasted, said, limit)
		}
	})
}
