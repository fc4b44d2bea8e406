// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
// except those to documents, which are granted to some users only, and writes to typed conduits,
// which are decided on by what is written.
func TestSysEFlowsAreValidated(t *testing.T) {
	plan, c := village(t)
	for _, one := range run(t, plan, c).Report(now).Accesses {
		if one.Task != "indexer" && one.Conduits == "documents" {
			continue
		}
		if one.Conduits == "interests" && one.Access == "write" || one.Conduits == "accesses" {
			if one.Undecided != one.Expected || one.Expected == 0 {
				t.Errorf("%s %ss %s: %d of %d are left to the monitor", one.Task, one.Access, one.Conduits,
					one.Undecided, one.Expected)
			}
			continue
		}
		if one.Granted != one.Expected || one.Expected == 0 {
			t.Errorf("%s %ss %s: %d of %d are granted", one.Task, one.Access, one.Conduits, one.Granted, one.Expected)
		}
	}
}

const shownOfHistories = `analyze: the indexer reads histories
  read documents: 27 of 27 granted
  read histories: 0 of 1 granted
    search-history, history:alice/de: what derives from it is protected until it goes through a conduit of kind descriptor called "syse/results/…", or through a conduit of type topics called "<C>", where each in C willsay topic(T) { "topics" says topic(T) } (search_history, owner alice, region de), what the task writes only until it goes through a conduit of kind descriptor (index)
  write index: 1 of 1 granted
compare: histories end in any descriptor
  opened: indexer read histories under search-history: 1 flows
  closed: worker(alice, de) write clicks under search-history: 4 flows
  closed: worker(alice, de) write histories under search-history: 4 flows
`

// An analysis shows the flow from the histories to the indexer as blocked, with the policy that blocks it, and
// a comparison with policies that open it says so. Before, the
// histories' exit was any descriptor, so that the indexer might read them and write the index.
func TestHistoriesAreShownAsBlockedAndOpened(t *testing.T) {
	plan, c := village(t)
	indexer := plan.task("indexer")
	indexer.Reads = append(indexer.Reads, "histories")
	var said strings.Builder
	fmt.Fprintln(&said, "analyze: the indexer reads histories")
	before := run(t, plan, c)
	for _, one := range before.Report(now).Accesses {
		if one.Task != "indexer" {
			continue
		}
		fmt.Fprintf(&said, "  %s %s: %d of %d granted\n", one.Access, one.Conduits, one.Granted, one.Expected)
		for _, cause := range one.RefusedBecause {
			fmt.Fprintf(&said, "    %s, %s: %s\n", cause.Policy, cause.Conduit, cause.Reason)
		}
	}
	_, candidate := sysE(t)
	candidate.Hash = "opened"
	for i, text := range candidate.Policies {
		if text.Name == "search-history" {
			candidate.Policies[i].Text = strings.Replace(text.Text, ", cNameIs(N), concat(N, \"syse/results/\", _)", "", 1)
		}
	}
	shadow, err := c.Shadow(candidate)
	if err != nil {
		t.Fatal(err)
	}
	after, err := Run(t.Context(), plan, shadow.After, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	comparison := NewComparison(shadow)
	comparison.Add(&Side{Open: before, Held: before}, &Side{Open: after, Held: after})
	fmt.Fprintln(&said, "compare: histories end in any descriptor")
	for _, one := range comparison.Changes().Opened {
		fmt.Fprintf(&said, "  opened: %s %s %s under %s: %d flows\n", one.Instance.Name(), one.Access, one.Conduits, one.Policy,
			one.Flows)
	}
	for _, one := range comparison.Changes().Closed {
		fmt.Fprintf(&said, "  closed: %s %s %s under %s: %d flows\n", one.Instance.Name(), one.Access, one.Conduits, one.Policy,
			one.Flows)
	}
	if diff := cmp.Diff(shownOfHistories, said.String()); diff != "" {
		t.Error(diff)
	}
}
