// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/waiting"
)

// Whatever a worker says, the session's time limits what is counted.
func TestCountsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lasted := time.Duration(rapid.Int64Range(int64(-time.Minute), int64(time.Hour)).Draw(t, "lasted"))
		said := rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.Uint64()).Draw(t, "said")
		limit := uint64(max(lasted, 0)/time.Second+1) * nativeOpensPerSecond
		got := credibleOpens(said, lasted)
		if got > limit || said <= limit && got != said {
			t.Fatalf("%d in %v, with %d said and a limit of %d", got, lasted, said, limit)
		}
	})
}

// A session's counts come with its end. Garbage spoils them by no more than its time allows.
func TestCountsOfASessionComeAtItsEnd(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.start()
	allowed := func() uint64 { return s.monitor.metrics.counters()["shai_decisions_total"] }
	counted := func(says string) uint64 {
		before := allowed()
		u := s.login("alice", "127.0.1.1")
		if got := u.must("counted"); got != "counted 0" {
			t.Errorf("a session begins with %s", got)
		}
		if got := u.must("count " + says); got != "counted "+says {
			t.Fatal(got)
		}
		_, _ = u.say("quit")
		waiting.Until(t, "the session is over", func() bool { return len(s.liveSessions()) == 0 })
		return allowed() - before
	}
	if got := counted("7"); got != 7 {
		t.Errorf("%d decisions are counted, want 7", got)
	}
	if got := counted("18446744073709551615"); got > uint64(waiting.Limit.Seconds())*nativeOpensPerSecond {
		t.Errorf("%d decisions are counted", got)
	}
}
