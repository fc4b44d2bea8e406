// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/waiting"
)

// Whatever a worker writes, the count never falls, and the session's time limits it.
func TestCountsAreBounded(t *testing.T) {
	begun := time.Unix(0, 0)
	counts, err := newSessionCounts("probe", begun)
	if err != nil {
		t.Fatal(err)
	}
	defer counts.page.Close()
	var field [8]byte
	before, now := uint64(0), begun
	rapid.Check(t, func(t *rapid.T) {
		now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "pause")))
		written := rapid.OneOf(rapid.Uint64Range(0, 1<<20), rapid.Uint64()).Draw(t, "written")
		binary.LittleEndian.PutUint64(field[:], written)
		if _, err := counts.page.WriteAt(field[:], 0); err != nil {
			t.Fatal(err)
		}
		got := counts.nativeOpens(now)
		limit := uint64(now.Sub(begun)/time.Second+1) * nativeOpensPerSecond
		if got < before || got > limit || written > before && written <= limit && got != written {
			t.Fatalf("%d after %d, with %d written and a limit of %d", got, before, written, limit)
		}
		before = got
	})
	if got := counts.nativeOpens(begun.Add(-time.Hour)); got != before {
		t.Errorf("%d when the clock goes back, %d before", got, before)
	}
}

// Nobody can change the size of a page: otherwise a reader could be made to fault, or the
// machine to run out of memory.
func TestCountersKeepTheirSize(t *testing.T) {
	counts, err := newSessionCounts("probe", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer counts.page.Close()
	status, err := counts.page.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 8, status.Size() - 1, status.Size() + 1, 1 << 40} {
		if err := counts.page.Truncate(size); err == nil {
			t.Errorf("the page has %d bytes now", size)
		}
	}
	if _, err := counts.page.WriteAt([]byte{1}, status.Size()); err == nil {
		t.Error("the page has grown")
	}
	if _, err := counts.page.WriteAt([]byte{1}, status.Size()-1); err != nil {
		t.Errorf("the allowed twin: %v", err)
	}
}

// Each worker has a page of its own, from the beginning of its session to its end.
func TestWorkersDoNotShareCounters(t *testing.T) {
	s := newStack(t)
	s.principal("alice", "de")
	s.principal("bob", "de")
	s.fact(regionsConduit, prefixRelation, "127.0.1.0/24", "de")
	s.start()
	allowed := func() uint64 { return s.monitor.metrics.counters()["shai_decisions_total"] }
	before := allowed()
	alice, bob := s.login("alice", "127.0.1.1"), s.login("bob", "127.0.1.1")
	if got := alice.must("count 7"); got != "counted 7" {
		t.Fatalf("alice: %s", got)
	}
	for who, worker := range map[string]*user{"alice": alice, "bob": bob} {
		want := map[string]string{"alice": "counted 7", "bob": "counted 0"}[who]
		if got := worker.must("counted"); got != want {
			t.Errorf("%s's page: %s, want %s", who, got, want)
		}
		for _, try := range []string{"resize 0", "resize 1000000"} {
			if got := worker.must(try); got != "error EPERM " {
				t.Errorf("%s: %s: %s", who, try, got)
			}
		}
	}
	if got := allowed() - before; got != 7 {
		t.Errorf("%d decisions are counted, want alice's 7", got)
	}
	// Garbage spoils the count of the session that it is written in, and no other's.
	bob.must("count 18446744073709551615")
	if got := allowed() - before; got <= 7 || got > 7+uint64(waiting.Limit.Seconds())*nativeOpensPerSecond {
		t.Errorf("%d decisions are counted", got)
	}
	bob.must("count 0")
	for _, u := range []*user{alice, bob} {
		_, _ = u.say("quit")
	}
	waiting.Until(t, "the sessions are over", func() bool { return len(s.pipeline().sessions.live()) == 0 })
	next := s.login("alice", "127.0.1.1")
	if got := next.must("counted"); got != "counted 0" {
		t.Errorf("the next session's page: %s", got)
	}
	if got := allowed() - before; got <= 7 || got >= math.MaxUint32 {
		t.Errorf("%d decisions are kept", got)
	}
}
