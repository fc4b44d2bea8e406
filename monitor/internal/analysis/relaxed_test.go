// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
)

// compared is what a candidate in which one policy of Sys-E is another one changes.
func compared(t *testing.T, name string, alter func(*catalog.PolicyText)) *Changes {
	t.Helper()
	plan, c := village(t)
	_, candidate := sysE(t)
	at := slices.IndexFunc(candidate.Policies, func(p catalog.PolicyText) bool { return p.Name == name })
	candidate.Hash = "changed"
	alter(&candidate.Policies[at])
	shadow, err := c.Shadow(candidate)
	if err != nil {
		t.Fatal(err)
	}
	before, after := run(t, plan, c), &Side{}
	for result, open := range map[**Result]bool{&after.Held: false, &after.Open: true} {
		if *result, err = Run(t.Context(), plan, shadow.After, Options{Now: now, Open: open}); err != nil {
			t.Fatal(err)
		}
	}
	comparison := NewComparison(shadow)
	comparison.Add(&Side{Open: before, Held: before}, after)
	return comparison.Changes()
}

func rows(changes []FlowChange) (list []string) {
	for _, one := range changes {
		list = append(list, fmt.Sprintf("%s %s %s: %d", one.Task, one.Access, one.Conduits, one.Flows))
	}
	return list
}

// A policy on trial closes nothing, but what it would close is listed, of tuples too.
func TestWhatAPolicyOnTrialWouldClose(t *testing.T) {
	const update = "update     :- sKeyIs(owner)."
	want := []string{"worker write clicks: 4", "worker write histories: 4"}
	for mode, isTrial := range map[catalog.Mode]bool{catalog.Enforce: false, catalog.Audit: true, catalog.Warn: true} {
		changes := compared(t, "search-history", func(p *catalog.PolicyText) {
			p.Text, p.Mode = strings.Replace(p.Text, update, "", 1), mode
		})
		would, closed := rows(changes.WouldClose), rows(changes.Closed)
		if isTrial {
			would, closed = closed, would
		}
		if !slices.Equal(closed, want) || len(would) > 0 {
			t.Errorf("mode %s: would close %v, closes %v", mode, rows(changes.WouldClose), rows(changes.Closed))
		}
	}
}

// A flow to files that do not exist yet is one flow for each place where they may be made.
func TestFlowsToFilesToCome(t *testing.T) {
	changes := compared(t, "index", func(p *catalog.PolicyText) {
		p.Text = `policy index { ` + exit + ` }`
	})
	if got := rows(changes.Closed); !slices.Contains(got, "indexer write index: 1") {
		t.Errorf("closed: %v", got)
	}
}
