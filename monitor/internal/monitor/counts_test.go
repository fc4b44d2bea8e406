// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"testing"

	"shai.dev/monitor/internal/waiting"
)

// A session's counts come with its end. Garbage spoils them by no more than its time allows.
func TestCountsOfASessionComeAtItsEnd(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.fact("regions", "prefix", "127.0.1.0/24", "de")
	s.start()
	allowed := func() uint64 { return s.monitor.metrics.Counters()["shai_decisions_total"] }
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
	// At most 10,000 a second are credible.
	if got := counted("18446744073709551615"); got > uint64(waiting.Limit.Seconds())*10_000 {
		t.Errorf("%d decisions are counted", got)
	}
}
