// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// An access whose proof holds at this instant only is not validated, and is decided again when the proof
// has ended: another may show it, for longer.
func TestAnotherProofFollowsOneOfAnInstant(t *testing.T) {
	for name, one := range map[string]struct {
		text string
		ends []time.Duration // from now on, of facts
		none bool            // nobody can tell when the decision changes
	}{
		"a fact that ends now, and one that ends later": {
			text: `read :- sKeyIs("a"), "when" says ends-at(E), timeIs(T), le(T, E).`, ends: []time.Duration{0, 24 * time.Hour},
		},
		"facts that all end now and later": {
			text: `read :- sKeyIs("a"), "when" says ends-at(E), "then" says ends-at(F), timeIs(T), le(T, E), le(T, F).`,
			ends: []time.Duration{0, 12 * time.Hour, 24 * time.Hour},
		},
		"a clause that holds now": {
			text: `read :- sKeyIs("a"), timeIs(T), eq(T, 2017-06-01T00:00:00Z).
				read :- sKeyIs("a"), timeIs(T), lt(T, 2017-06-02T00:00:00Z).`,
		},
		"a clause that begins after one has ended": {
			text: `read :- sKeyIs("a"), timeIs(T), le(T, 2017-06-01T00:00:00Z).
				read :- sKeyIs("a"), timeIs(T), ge(T, 2017-06-01T00:30:00Z).`,
		},
		"an instant that is computed": {
			text: `read :- sKeyIs("a"), timeIs(T), add(U, T, 60), lt(U, 2018-01-01T00:00:00Z).`, none: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, c := onePolicy(t, one.text+"\n"+exit, "/d/a/1")
			plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit,
				Policy: &catalog.Reference{Policy: "documents"}, From: "indexer", To: "worker"})
			plan.Tasks[1].Reads = append(plan.Tasks[1].Reads, "pipe")
			for _, after := range one.ends {
				for _, conduit := range []string{"when", "then"} {
					if _, err := addFacts(c, policy.Fact{Conduit: conduit, Relation: "ends-at",
						Arguments: []policy.Value{policy.Time(now.Add(after))}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := run(t, plan, c)
			before := canonical(r)
			if _, found := r.NextExpiry(); found == one.none {
				t.Fatalf("a decision changes later: %v", found)
			}
			later := Options{Now: now.Add(time.Hour)}
			r, _, err := r.Expire(context.Background(), later)
			if err != nil {
				t.Fatal(err)
			}
			full, err := Run(context.Background(), plan, c.State(), later)
			if err != nil || canonical(r) != canonical(full) {
				t.Errorf("followed\n%s\nfull run (%v)\n%s", canonical(r), err, canonical(full))
			}
			if differs := canonical(full) != before; differs == one.none {
				t.Errorf("time changes something: %v\n%s", differs, before)
			}
		})
	}
}
