// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package monitor

import (
	"context"
	"strings"
	"testing"
	"time"

	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline/pipelinetest"
	"shai.dev/monitor/internal/waiting"
	"shai.dev/monitor/policy"
)

// An access that a policy limits in time leaves the capability sets when it expires,
// without any other change.
func TestWhatTimeEndsLeavesTheCapabilitySets(t *testing.T) {
	m, _ := bareMonitor(t)
	analyzeBare(t, m)
	backend := superviseBare(t, m)
	offer, diary := classOf(t, m, "/offer/1.txt"), classOf(t, m, "/diary/alice/1.txt")
	const alice = "worker(alice, de)"
	if !holds(t, backend, alice, offer) || !holds(t, backend, alice, diary) {
		t.Fatal("alice may not read what she should")
	}
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		now   time.Time
		holds bool
	}{{end.Add(-time.Nanosecond), true}, {end, false}} {
		if err := m.expire(context.Background(), step.now); err != nil {
			t.Fatal(err)
		}
		if got := holds(t, backend, alice, offer); got != step.holds || !holds(t, backend, alice, diary) {
			t.Errorf("at %v: the offer is readable: %v, want %v", step.now, got, step.holds)
		}
	}
}

// The monitor notices by itself, also for an analysis that came after it began to
// wait.
func TestExpiryIsWaitedFor(t *testing.T) {
	m, _ := bareMonitor(t)
	soon := time.Now().Add(300 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	applyBare(t, m, strings.Replace(pipelinetest.Bare, "2100-01-01T00:00:00Z", soon, 1))
	analyzeBare(t, m)
	backend := superviseBare(t, m)
	offer := classOf(t, m, "/offer/1.txt")
	waiting.Until(t, "the offer leaves the capability set", func() bool { return !holds(t, backend, "worker(alice, de)", offer) })
}

// The monitor follows windows of time by itself: the analysis gets the instances of the next ones and
// loses those of past ones, as a full run would.
func TestWindowsAreFollowed(t *testing.T) {
	m, _ := bareMonitor(t)
	applyBare(t, m, strings.NewReplacer(
		"parameters: [user, region]\n  taint", "parameters: [user, region, shift]\n  taint",
		"  expect:\n", "  parameters: [{name: shift, window: {start: \"2026-01-01T00:00:00Z\", every: 1s}}]\n  expect:\n",
	).Replace(pipelinetest.Bare))
	analyzeBare(t, m)
	shifts := func() map[string]bool {
		found := map[string]bool{}
		for _, one := range resultOf(m).Instances() {
			if one.Instance.Task == "worker" {
				found[one.Instance.Arguments[2]] = true
			}
		}
		return found
	}
	first := shifts()
	waiting.Until(t, "the analysis is of later windows", func() bool {
		now := shifts()
		for shift := range first {
			if now[shift] {
				return false
			}
		}
		return len(now) == 2
	})
	open, _ := m.state().ConduitNamed("/open/1.txt")
	readers, err := api.ReadersOf(t.Context(), "bare", resultOf(m), m.state(),
		api.ReadersRequest{Conduit: open.Name, Limit: 9}, open, policy.Read)
	if err != nil || len(readers.Readers) != 3 || len(readers.Readers[1].Regions) != 1 {
		t.Errorf("the readers are %+v, %v; want each region once, for this window and the next", readers, err)
	}
	if result := resultOf(m); !result.Covers(m.pipelines["bare"].Plan(), m.state()) {
		t.Errorf("the analysis has not the instances of a full run: %v", shifts())
	}
}
