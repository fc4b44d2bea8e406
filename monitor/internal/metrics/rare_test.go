// SPDX-License-Identifier: BSD-2-Clause

package metrics

import (
	"slices"
	"testing"
)

// Alerts and dashboards show the increase of these counters. The first event would be none if the series
// began with it.
func TestCountersOfRareEventsBeginAtZero(t *testing.T) {
	m := New()
	m.Pipeline("syse", Names{Tasks: []string{"search", "worker"},
		Policies: []Policy{{Name: "friends"}, {Name: "private"}, {Name: "tried", Relaxed: "Audit"}}})
	m.FollowSources([]string{"friends"})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if counter := metric.GetCounter(); counter != nil && counter.GetValue() == 0 {
				found[family.GetName()]++
			}
		}
	}
	for name, want := range map[string]int{
		"shai_task_restarts_total": 2, "shai_workers_discarded_total": 2, "shai_analyses_total": 3,
		"shai_fact_source_failures_total": 1, "shai_fact_changes_total": 2, "shai_audit_failures_total": 1,
		"shai_scrapes_rejected_total": 1, "shai_ingested_documents_total": 4,
		"shai_denials_total": 2 * 2 * 2, "shai_would_deny_total": 2,
	} {
		if found[name] != want {
			t.Errorf("%s has %d series of 0, want %d", name, found[name], want)
		}
	}
}

func TestSlowRevocationsHaveABucket(t *testing.T) {
	if !slices.Contains(revocationBuckets, 10) {
		t.Error("the alert ShaiRevocationSlow counts the revocations of more than 10 seconds")
	}
}
