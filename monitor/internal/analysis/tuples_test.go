// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"testing"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A tuple is of no class, so what is said of its name gives and takes accesses to it.
func TestFactsAboutATuple(t *testing.T) {
	plan, bundle := zooBundle(t)
	bundle.Hash = "notes"
	bundle.Policies = append(bundle.Policies, catalog.PolicyText{Name: "notes", File: "notes",
		Text: `policy notes { read :- sKeyIs(K), "list" says open(this, K). ` + exit + ` }`})
	bundle.Rules = append(bundle.Rules, catalog.Rule{Set: "zoo/notes", Kind: policy.TupleConduit, Path: "note:{owner}",
		Policy: catalog.Reference{Policy: "notes"}})
	plan.Sets = append(plan.Sets, Set{Name: "notes", Catalog: "zoo/notes", Kind: policy.TupleConduit,
		Paths: []string{"note:{owner}"}})
	plan.Tasks[2].Reads = []string{"notes"}
	c := newCatalog(t, bundle)
	open := fact("list", "open", "note:a", "a")
	if _, err := addFacts(c, fact("population", "home", "a", "de"), open); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	type changed func(*catalog.Catalog, ...policy.Fact) (*catalog.Change, error)
	for step, changed := range []changed{removeFacts, addFacts, removeFacts} {
		change, err := changed(c, open)
		r, _ = follow(t, r, change, err)
		held, _ := r.Instance(Instance{"worker", []string{"a", "de"}})
		if full := canonical(run(t, plan, c)); canonical(r) != full || len(held.Others) != step%2 {
			t.Errorf("step %d, followed\n%s\nfull run\n%s", step, canonical(r), full)
		}
	}
}
