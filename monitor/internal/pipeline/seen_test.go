// SPDX-License-Identifier: BSD-2-Clause

//go:build (linux && amd64) || freebsd

package pipeline

import (
	"slices"
	"testing"

	"shai.dev/monitor/internal/analysis"
)

// A login that nobody foresaw does not wait until that is on disk. The next analysis does.
func TestALoginDoesNotWaitForTheDisk(t *testing.T) {
	p := probe(t, SessionLimits{})
	p.analyze()
	p.services.seen.storing.Lock() // as if the disk was busy
	for _, region := range []string{"fr", "it"} {
		_, err := p.capabilities(p.tasks["worker"], sessionOf("alice", region))
		p.must(err)
	}
	stored, err := p.services.Catalog.Predictions()
	p.must(err)
	if len(stored) > 0 {
		t.Errorf("on disk while it was busy: %v", stored)
	}
	p.services.seen.storing.Unlock()
	p.must(p.Remember())
	isSeen := func(region string) bool {
		return slices.ContainsFunc(p.plan.Seen, func(one analysis.Instance) bool {
			return one.Name() == "worker(alice, "+region+")"
		})
	}
	if !isSeen("fr") || !isSeen("it") {
		t.Errorf("the next analysis knows of %v", p.plan.Seen)
	}
}

// What waits for the disk is bounded.
func TestWhatWaitsForTheDiskIsBounded(t *testing.T) {
	p := probe(t, SessionLimits{})
	p.services.seen.storing.Lock()
	for range 2 * maxSeen {
		p.services.predict("probe", "worker", map[string]string{"user": "alice", "region": "fr"})
	}
	if waiting := len(p.services.seen.waiting); waiting != maxSeen {
		t.Errorf("%d instances wait, want %d", waiting, maxSeen)
	}
	p.services.seen.storing.Unlock()
}
