// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"strings"
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// instanceAsks decides one access of an instance as it happens.
func instanceAsks(t *testing.T, plan *Plan, state *catalog.State, instance Instance, what policy.Operation,
	conduit string) policy.Decision {
	t.Helper()
	who, err := newSubject(plan, state, instance)
	if err != nil {
		t.Fatal(err)
	}
	found, ok := state.ConduitNamed(conduit)
	if !ok {
		t.Fatalf("%s is no conduit", conduit)
	}
	return policy.Decide(what, who.taint, found, state, policy.Environment{Session: who.session, Now: now})
}

// Sys-E's search histories end in the results channel. An indexer that somebody has
// configured to index them (a fault that Thoth injects, too) is stopped whatever its
// taint is: with its own it cannot read a history, and with one that can it cannot write
// the index.
func TestHistoriesCannotReachTheIndex(t *testing.T) {
	const history, index = "history:alice/de", "/index/0/segments_1"
	for _, test := range []struct {
		name, taint          string
		documents, histories bool // whether the indexer may read them
		index                bool // whether it may write the index
	}{
		{"as shipped", "index", true, false, true},
		{"with the search engine's taint", "engine", true, true, false},
		{"with the taint of a query", "internal", true, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, c := village(t)
			indexer := plan.task("indexer")
			indexer.Reads = append(indexer.Reads, "histories")
			indexer.Taint = catalog.Reference{Policy: test.taint}
			instance := Instance{Task: "indexer"}
			for _, one := range []struct {
				what    policy.Operation
				conduit string
				want    bool
			}{
				{read, "/corpus/private/alice/1.txt", test.documents}, {read, "/corpus/public/2.txt", test.documents},
				{read, history, test.histories}, {write, index, test.index},
			} {
				if got := instanceAsks(t, plan, c.State(), instance, one.what, one.conduit); got.Allowed != one.want {
					t.Errorf("the indexer may %s %s: %v, want %v; %s", one.what, one.conduit, got.Allowed, one.want,
						got.Reason)
				}
			}
			held, _ := run(t, plan, c).Instance(instance)
			for _, other := range held.Others {
				if strings.HasPrefix(other.Conduit, "history:") {
					t.Errorf("the indexer's capability set has %s", other.Conduit)
				}
			}
			if got := len(held.Writes) == 1; got != test.index {
				t.Errorf("the indexer's capability set has the index: %v, want %v", got, test.index)
			}
		})
	}
}

// The pipeline still does its work: all expected accesses of its tasks are granted,
// except those to documents, which are granted to some users only.
func TestSysEFlowsAreValidated(t *testing.T) {
	plan, c := village(t)
	for _, one := range run(t, plan, c).Report(now).Accesses {
		if one.Task == "worker" && one.Conduits == "documents" {
			continue
		}
		if one.Granted != one.Expected || one.Expected == 0 {
			t.Errorf("%s %ss %s: %d of %d are granted", one.Task, one.Access, one.Conduits, one.Granted, one.Expected)
		}
	}
}
