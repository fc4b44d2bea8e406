// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/waiting"
)

// bareSet is alice's capability set as it is in force.
func bareSet(t *testing.T, p *pipeline) *capabilitySet {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	holds := p.sets["worker(alice, de)"]
	if holds == nil {
		t.Fatal("alice has no capability set")
	}
	return holds
}

// An access that a policy limits in time leaves the capability sets when it expires,
// without any other change.
func TestWhatTimeEndsLeavesTheCapabilitySets(t *testing.T) {
	m, p := bareMonitor(t)
	analyzeBare(t, m)
	offer, diary := classOf(t, m, "/offer/1.txt"), classOf(t, m, "/diary/alice/1.txt")
	if before := bareSet(t, p); !before.holdsClass(offer) || !before.holdsClass(diary) {
		t.Fatalf("classes %v; offer is %d, diary %d", before.classes, offer, diary)
	}
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		now   time.Time
		holds bool
	}{{end.Add(-time.Nanosecond), true}, {end, false}} {
		if err := m.expire(context.Background(), step.now); err != nil {
			t.Fatal(err)
		}
		if after := bareSet(t, p); after.holdsClass(offer) != step.holds || !after.holdsClass(diary) {
			t.Errorf("at %v: classes %v; offer is %d, diary %d", step.now, after.classes, offer, diary)
		}
	}
}

// The monitor notices by itself, also for an analysis that came after it began to
// wait.
func TestExpiryIsWaitedFor(t *testing.T) {
	m, _ := bareMonitor(t)
	soon := time.Now().Add(300 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	applyBare(t, m, strings.Replace(bareManifest, "2100-01-01T00:00:00Z", soon, 1))
	p := m.pipelines["bare"]
	analyzeBare(t, m)
	offer := classOf(t, m, "/offer/1.txt")
	waiting.Until(t, "the offer leaves the capability set", func() bool { return !bareSet(t, p).holdsClass(offer) })
}
