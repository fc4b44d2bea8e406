// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// timed is a pipeline with accesses of every kind, to documents and to a pipe: those of the worker of a end, those of
// the worker of b begin, and what the indexer may write, until and from say. Each does so at another instant.
func timed(t *testing.T) (*Plan, *catalog.Catalog) {
	t.Helper()
	plan, c := onePolicy(t, `policy documents(owner) {
		read :- sKeyIs("a"), "ends" says at(owner, E), timeIs(T), lt(T, E).
		read :- sKeyIs("b"), "begins" says at(owner, B), timeIs(T), ge(T, B).
		update :- sKeyIs("task/indexer"), "until" says at(owner, E), timeIs(T), lt(T, E).
		update :- sKeyIs("task/indexer"), "from" says at(owner, B), timeIs(T), ge(T, B).
		`+exit+` }`, "/d/a/1", "/d/b/1")
	reference := catalog.Reference{Policy: "documents", Arguments: map[string]string{"owner": "pipe"}}
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit,
		Policy: &reference, From: "indexer", To: "worker"})
	plan.Tasks[0].Taint = catalog.Reference{Policy: "free"}
	for i := range plan.Tasks {
		plan.Tasks[i].Reads, plan.Tasks[i].Writes = []string{"documents", "pipe"}, []string{"documents", "pipe"}
	}
	return plan, c
}

// instants are the facts that a timed pipeline follows, in order.
func instants() []policy.Fact {
	return []policy.Fact{at("begins", "b", 24), at("begins", "a", 30), at("begins", "pipe", 36), at("ends", "a", 48),
		at("ends", "b", 54), at("ends", "pipe", 60), at("until", "a", 72), at("until", "b", 78),
		at("until", "pipe", 84), at("from", "a", 87)}
}

func at(conduit, owner string, hours int) policy.Fact {
	return policy.Fact{Conduit: conduit, Relation: "at", Arguments: []policy.Value{policy.String(owner),
		policy.Time(now.Add(time.Duration(hours) * time.Hour))}}
}

// Whatever a result was made by, it knows when something of it ends or begins: who calls Expire at these instants,
// and no others, has the accesses of a full run at all times.
func TestTheClockIsFollowed(t *testing.T) {
	for name, made := range map[string]func(testing.TB, *Plan, *catalog.Catalog) *Result{
		"a run": run,
		"a run in cohorts": func(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
			return inCohorts(t, plan, c, Options{Now: now, cohort: 3})
		},
		"a run in cohorts that searches": func(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
			return inCohorts(t, plan, c, Options{Now: now, cohort: 3, search: true})
		},
		"updates, of the first first": func(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
			return updatedBy(t, plan, c, instants())
		},
		"updates, of the last first": func(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
			last := instants()
			slices.Reverse(last)
			return updatedBy(t, plan, c, last)
		},
		"an import": func(t testing.TB, plan *Plan, c *catalog.Catalog) *Result {
			r, err := Import(t.Context(), run(t, plan, c).Encode(), plan, c.State(), anyOf, Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, c := timed(t)
			if _, err := addFacts(c, instants()...); err != nil {
				t.Fatal(err)
			}
			followTheClock(t, plan, c, made(t, plan, c))
		})
	}
}

func followTheClock(t *testing.T, plan *Plan, c *catalog.Catalog, r *Result) {
	t.Helper()
	seen, steps := map[string]bool{}, 0
	for hours := 0; hours < 4*24; hours += 6 {
		at := now.Add(time.Duration(hours) * time.Hour)
		for next, ok := r.NextExpiry(); ok && !next.After(at); next, ok = r.NextExpiry() {
			var err error
			if r, _, err = r.Expire(t.Context(), Options{Now: next}); err != nil {
				t.Fatal(err)
			}
			if steps++; steps > 10 {
				t.Fatal("more instants follow than there are")
			}
		}
		full, err := Run(t.Context(), plan, c.State(), Options{Now: at})
		if err != nil || canonical(r) != canonical(full) {
			t.Fatalf("at %v, followed\n%s\nfull run (%v)\n%s", at, canonical(r), err, canonical(full))
		}
		seen[canonical(full)] = true
	}
	if len(seen) != 11 {
		t.Errorf("the accesses are %d different ones, want 11: before and after each of ten instants", len(seen))
	}
}

// inCohorts is a run class by class.
func inCohorts(t testing.TB, plan *Plan, c *catalog.Catalog, options Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), plan, c.State(), options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// updatedBy is a result without facts, which follows one after the other.
func updatedBy(t testing.TB, plan *Plan, c *catalog.Catalog, facts []policy.Fact) *Result {
	t.Helper()
	if _, err := removeFacts(c, facts...); err != nil {
		t.Fatal(err)
	}
	r := run(t, plan, c)
	for _, one := range facts {
		change, err := addFacts(c, one)
		r, _ = follow(t, r, change, err)
	}
	return r
}

// A cohort's candidates are found past a class that has lost its last document, for tasks that read its set only, and
// its accesses to conduits without a class are decided on.
func TestCohortsPastAClassThatHasGone(t *testing.T) {
	plan, c := onePolicy(t, `policy documents(owner) {
		read :- sKeyIs(owner). update :- "list" says open-to(this). `+exit+` }`)
	listed := fact("list", "open-to", "/d/a/1")
	if _, err := addFacts(c, listed); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"/d/a/1", "/d/b/1"} {
		if _, _, err := c.Register([]string{document}); err != nil {
			t.Fatal(err)
		}
	}
	change, err := removeFacts(c, listed)
	if err != nil || len(change.Moved) != 1 {
		t.Fatalf("no document has moved: this test is about nothing (%v)", err)
	}
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit, From: "indexer",
		To: "worker", Policy: &catalog.Reference{Policy: "documents", Arguments: map[string]string{"owner": "a"}}})
	plan.Tasks[1].Reads = append(plan.Tasks[1].Reads, "pipe")
	lonely := plan.Tasks[1]
	lonely.Name, lonely.Reads, lonely.Writes = "writer", nil, nil
	plan.Tasks = append(plan.Tasks, lonely)
	got := canonical(inCohorts(t, plan, c, Options{Now: now, search: true, cohort: 3}))
	if want := canonical(run(t, plan, c)); got != want {
		t.Errorf("in cohorts\n%s\nby itself\n%s", got, want)
	}
}
