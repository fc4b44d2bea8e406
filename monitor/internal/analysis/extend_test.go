// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// unexpecting is the village with workers that are not expected to read documents.
func unexpecting(t testing.TB) (*Plan, *catalog.Catalog) {
	t.Helper()
	plan, c := village(t)
	worker := plan.task("worker")
	worker.Reads = slices.DeleteFunc(slices.Clone(worker.Reads), func(set string) bool { return set == "documents" })
	return plan, c
}

func classNamed(t testing.TB, c *catalog.Catalog, document string) uint32 {
	t.Helper()
	id, found := c.State().ID(document)
	if !found {
		t.Fatalf("no conduit is called %s", document)
	}
	return c.State().ClassOf(id)
}

func extend(t testing.TB, r *Result, c *catalog.Catalog, accesses ...Access) (*Result, []Affected) {
	t.Helper()
	next, affected, err := r.Extend(t.Context(), c.State(), accesses, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return next, affected
}

func follow(t testing.TB, r *Result, change *catalog.Change, err error) (*Result, []Affected) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	next, affected, err := r.Update(t.Context(), change, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return next, affected
}

var aliceAtHome, aliceAbroad = Instance{"worker", []string{"alice", "de"}}, Instance{"worker", []string{"alice", "fr"}}

// What is learnt is validated, follows the facts that it rests on, and stays in later runs.
func TestExtendByAClass(t *testing.T) {
	plan, c := unexpecting(t)
	result := run(t, plan, c)
	of := classNamed(t, c, "/corpus/friends/bob/1.txt")
	learnt, affected := extend(t, result, c, Access{aliceAtHome, of}, Access{aliceAtHome, of})
	if len(affected) != 1 || !slices.Equal(affected[0].Gained, []uint32{of}) || len(affected[0].Lost) > 0 {
		t.Fatalf("what the instance may read: %+v", affected)
	}
	if held, _ := result.Instance(aliceAtHome); held.mayRead(of) {
		t.Error("the former result has changed")
	}
	if again, affected := extend(t, learnt, c, Access{aliceAtHome, of}); len(affected) > 0 || !again.equal(learnt) {
		t.Error("a second time, something has changed")
	}
	rerun, err := Run(t.Context(), plan, c.State(), Options{Now: now, Earlier: learnt})
	if err != nil || !rerun.equal(learnt) {
		t.Errorf("a run after it has another result (%v)", err)
	}
	if run(t, plan, c).equal(learnt) {
		t.Error("a run without it has the same result: this test is about nothing")
	}
	for name, before := range map[string]*Result{"learnt": learnt, "run again": rerun} {
		t.Run(name, func(t *testing.T) {
			friend := fact("friends/bob", "friend", "alice")
			change, err := removeFacts(c, friend)
			after, affected := follow(t, before, change, err)
			if len(affected) != 1 || !slices.Equal(affected[0].Lost, []uint32{of}) {
				t.Errorf("when the friend is removed: %+v", affected)
			}
			change, err = addFacts(c, friend)
			if err != nil {
				t.Fatal(err)
			}
			if held, _ := after.Instance(aliceAtHome); held.mayRead(of) || len(change.Added) != 1 {
				t.Error("the instance may read what its user may not")
			}
		})
	}
}

// Nothing is learnt that the policies do not allow the instance.
func TestExtendByWhatIsNotAllowed(t *testing.T) {
	plan, c := unexpecting(t)
	result := run(t, plan, c)
	for _, access := range []Access{
		{aliceAtHome, classNamed(t, c, "/corpus/private/bob/1.txt")},
		{aliceAtHome, classNamed(t, c, "/corpus/public/1.txt")}, // blocked in de
		{aliceAtHome, 1 << 20},
		{Instance{"worker", []string{"alice"}}, 0},
		{Instance{"nobody", nil}, 0},
	} {
		if next, affected := extend(t, result, c, access); len(affected) > 0 || !next.equal(result) {
			t.Errorf("%+v: %+v", access, affected)
		}
	}
}

// An instance that nobody foresaw gets what a full run gives it, and follows changes.
func TestExtendByAnInstance(t *testing.T) {
	plan, c := village(t)
	result := run(t, plan, c)
	of := classNamed(t, c, "/corpus/friends/bob/1.txt")
	next, affected := extend(t, result, c, Access{aliceAbroad, of}, Access{Instance: aliceAbroad})
	plan.Seen = []Instance{aliceAbroad}
	if !next.equal(run(t, plan, c)) || len(affected) != 1 || affected[0].Before != nil {
		t.Errorf("the result is not that of a full run; %d instances are affected", len(affected))
	}
	change, err := removeFacts(c, fact("friends/bob", "friend", "alice"))
	after, affected := follow(t, next, change, err)
	if len(affected) != 2 || !after.equal(run(t, plan, c)) {
		t.Errorf("after a change, %d instances are affected", len(affected))
	}
	change, err = addFacts(c, fact("population", "home", "erin", "fr"))
	if after, _ = follow(t, after, change, err); !after.equal(run(t, plan, c)) {
		t.Error("after a change of the expected instances, the result is another one")
	}
}

// Whatever is learnt, changed and analysed, in any order: a result has what a run on the same
// state has, and beyond that only what the policies allow on this state.
func TestLearntAccessesRestOnTheState(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		plan, c := unexpecting(t)
		result := run(t, plan, c)
		regions := rapid.SampledFrom([]string{"de", "us"})
		users := rapid.SampledFrom([]string{"alice", "bob", "carol", "dave"})
		r.Repeat(map[string]func(*rapid.T){
			"learn": func(r *rapid.T) {
				instance := Instance{"worker", []string{users.Draw(r, "user"), regions.Draw(r, "region")}}
				class := rapid.Uint32Range(0, uint32(c.State().Classes())).Draw(r, "class")
				if _, known := result.Instance(instance); !known {
					plan.Remember(append(plan.Seen, instance))
				}
				result, _ = extend(t, result, c, Access{instance, class})
			},
			"befriend": func(r *rapid.T) {
				change, err := addFacts(c, fact("friends/"+users.Draw(r, "user"), "friend", users.Draw(r, "friend")))
				result, _ = follow(t, result, change, err)
			},
			"unfriend": func(r *rapid.T) {
				change, err := removeFacts(c, fact("friends/"+users.Draw(r, "user"), "friend", users.Draw(r, "friend")))
				result, _ = follow(t, result, change, err)
			},
			"block": func(r *rapid.T) {
				one := fact("blacklist/de", "blocked", "/corpus/friends/"+users.Draw(r, "user")+"/1.txt")
				change, err := addFacts(c, one)
				result, _ = follow(t, result, change, err)
			},
			"run": func(r *rapid.T) {
				again, err := Run(t.Context(), plan, c.State(), Options{Now: now, Earlier: result})
				if err != nil || len(difference(result.instances, again.instances)) > 0 {
					r.Fatalf("a run finds other accesses (%v)", err)
				}
				result = again
			},
			"": func(r *rapid.T) { expectAllowed(r, result, run(t, plan, c), c.State()) },
		})
	})
}

// expectAllowed fails if a result lacks something that a run has, or has something that is
// not allowed.
func expectAllowed(t *rapid.T, result, run *Result, state *catalog.State) {
	for _, one := range run.Instances() {
		held, _ := result.Instance(one.Instance)
		if held == nil || len(minus(one.Reads, held.Reads)) > 0 {
			t.Fatalf("%s lacks what a run gives it", one.Instance.Name())
		}
		who, err := newSubject(result.plan, state, one.Instance)
		if err != nil {
			continue
		}
		for _, class := range held.Reads {
			to := newTarget(state, class)
			decision := policy.Decide(read, who.taint, to.conduit, state,
				policy.Environment{Session: who.session, Now: now})
			if !decision.Allowed {
				t.Fatalf("%s may read %s: %s", one.Instance.Name(), to.name, decision.Reason)
			}
		}
	}
}
