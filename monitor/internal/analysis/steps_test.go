// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// A result that has missed a change is of another state: the next change leads to a run on the new state, which
// ends what the missed one has ended, and keeps what was learnt.
func TestAMissedChangeIsNotLost(t *testing.T) {
	type step func(*Result, context.Context, *catalog.Change, Options) (*Result, []Affected, error)
	for name, step := range map[string]step{"update": (*Result).Update, "follow": (*Result).Follow} {
		t.Run(name, func(t *testing.T) {
			plan, c := unexpecting(t)
			ended := classNamed(t, c, "/corpus/friends/bob/1.txt")
			kept := classNamed(t, c, "/corpus/private/alice/1.txt")
			learnt, _ := extend(t, run(t, plan, c), c, Access{aliceAtHome, ended}, Access{aliceAtHome, kept})
			if _, err := removeFacts(c, fact("friends/bob", "friend", "alice")); err != nil {
				t.Fatal(err)
			}
			change, err := addFacts(c, fact("friends/carol", "friend", "dave"))
			if err != nil {
				t.Fatal(err)
			}
			next, _, err := step(learnt, t.Context(), change, Options{Now: now})
			if err != nil {
				t.Fatal(err)
			}
			held, _ := next.Instance(aliceAtHome)
			if held.mayRead(ended) || !held.mayRead(kept) {
				t.Errorf("after a missed change, the instance reads %v; want %d and not %d", held.Reads, kept, ended)
			}
		})
	}
}

// What an earlier result says is kept for its own plan only.
func TestRunActiveUnderAnotherPlan(t *testing.T) {
	plan, c := village(t)
	earlier, other := run(t, plan, c), *plan
	again, err := RunActive(t.Context(), &other, c.State(), []Instance{aliceAtHome}, earlier, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := again.Instance(Instance{"worker", []string{"bob", "us"}}); kept {
		t.Error("an instance is kept that was analysed under another plan")
	}
}

// A class that comes with documents is decided on later, for those who are expected to use it.
func TestPostponedClasses(t *testing.T) {
	plan, c := onePolicy(t, `policy documents(owner) {
		read :- sKeyIs(owner), sRegionIs("us"). update :- sKeyIs(owner). `+exit+` }`, "/d/a/1")
	r := run(t, plan, c)
	_, change, err := c.Register([]string{"/d/b/1"})
	if err != nil || len(change.Classes) != 1 {
		t.Fatalf("classes %v, %v", change, err)
	}
	next, ok := r.Postpone(change)
	if !ok || canonical(next) != canonical(r) || !next.Current(c.State()) || r.RestsOn(change) {
		t.Fatalf("postponed: %v", ok)
	}
	decided, affected, err := next.Decide(t.Context(), c.State(), change.Classes, plan.Instances(c.State(), now),
		Options{Now: now})
	full := canonical(run(t, plan, c))
	if err != nil || canonical(decided) != full || full == canonical(r) || len(affected) != 2 {
		t.Errorf("%d affected (%v), decided\n%s\nfull run\n%s", len(affected), err, canonical(decided), full)
	}
	if b, _ := decided.Instance(Instance{"worker", []string{"b", "us"}}); len(b.Reads) != 1 || len(b.Writes) != 1 {
		t.Errorf("the owner reads %v and writes %v", b.Reads, b.Writes)
	}
	if _, ok := r.Postpone(&catalog.Change{Before: c.State(), After: c.State()}); ok {
		t.Error("a change is postponed that is not of the result's state")
	}
	for name, alter := range map[string]func(*catalog.Change){
		"a fact more": func(c *catalog.Change) { c.Added = []policy.Fact{fact("a", "b")} },
		"a fact less": func(c *catalog.Change) { c.Removed = []policy.Fact{fact("a", "b")} },
		"a bundle":    func(c *catalog.Change) { c.Bundle = true },
	} {
		altered := *change
		alter(&altered)
		if _, ok := r.Postpone(&altered); ok {
			t.Errorf("%s: postponed", name)
		}
	}
	set := []string{"documents"}
	plan.Tasks = []Task{{Name: "reader", Reads: set}, {Name: "writer", Writes: set}, {Name: "neither"}}
	for task, uses := range map[string]bool{"reader": true, "writer": true, "neither": false, "nobody": false} {
		if plan.Uses(c.State(), task, change.Classes) != uses {
			t.Errorf("task %s uses the class: %v", task, !uses)
		}
	}
}

// Accesses that rest on there being a conduit have to be decided again when it moves.
func TestResultsRestOnConduits(t *testing.T) {
	plan, c := onePolicy(t, `read :- sKeyIs("a"), cIdExists(1). `+exit, "/d/a/1", "/d/a/2")
	r := run(t, plan, c)
	for id, want := range map[uint32]bool{1: true, 2: false} {
		change := &catalog.Change{Before: c.State(), After: c.State(), Moved: []catalog.Move{{ID: id}}}
		if r.RestsOn(change) != want {
			t.Errorf("the result rests on conduit %d: %v", id, !want)
		}
	}
}

// Neither Extend nor Decide forgets what a limit has left to find.
func TestWhatIsLeftStaysLeft(t *testing.T) {
	for name, step := range map[string]func(*Result, *catalog.Catalog) (*Result, []Affected, error){
		"extend": func(r *Result, c *catalog.Catalog) (*Result, []Affected, error) {
			known := Access{Instance: Instance{"worker", []string{"b", "us"}}}
			return r.Extend(context.Background(), c.State(), []Access{known}, Options{Now: now})
		},
		"decide": func(r *Result, c *catalog.Catalog) (*Result, []Affected, error) {
			return r.Decide(context.Background(), c.State(), nil, nil, Options{Now: now})
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan, c := onePolicy(t, `read :- "list" says open(). `+exit, "/d/a/1")
			r := run(t, plan, c)
			change, err := addFacts(c, fact("list", "open"))
			if err != nil {
				t.Fatal(err)
			}
			r, _, err = r.Update(t.Context(), change, Options{Now: now, Limit: 1})
			if err != nil || !r.Pending() {
				t.Fatalf("nothing is left: this test is about nothing (%v)", err)
			}
			if r, _, err = step(r, c); err != nil {
				t.Fatal(err)
			}
			for r.Pending() {
				if r, _, err = r.Continue(t.Context(), Options{Now: now}); err != nil {
					t.Fatal(err)
				}
			}
			if full := canonical(run(t, plan, c)); canonical(r) != full {
				t.Errorf("continued\n%s\nfull run\n%s", canonical(r), full)
			}
		})
	}
}

// shifts has workers that are others each day. The list opens the document to a.
func shifts(t *testing.T) (*Plan, *catalog.Catalog, policy.Fact) {
	t.Helper()
	plan, c := onePolicy(t, `read :- sKeyIs(K), "list" says open-to(K). `+exit, "/d/a/1")
	plan.Declared = []Parameter{{Name: "shift", Start: now.Add(-time.Hour), Every: 24 * time.Hour}}
	plan.Tasks[1].Parameters = []string{"user", "region", "shift"}
	open := fact("list", "open-to", "a")
	if _, err := addFacts(c, open); err != nil {
		t.Fatal(err)
	}
	return plan, c, open
}

// Whoever comes with a window is told of once, as new, when it is decided on, whether it may read something or not.
func TestWhoComesWithAWindowIsNew(t *testing.T) {
	plan, c, _ := shifts(t)
	r := run(t, plan, c)
	at, _ := r.NextExpiry()
	next, affected, err := r.Expire(t.Context(), Options{Now: at, Limit: 1})
	if err != nil || !next.Pending() {
		t.Fatalf("nothing is left: this test is about nothing (%v)", err)
	}
	isNew := map[string]int{}
	for {
		for _, one := range affected {
			if one.Before == nil {
				isNew[one.Instance.Name()]++
			}
		}
		if !next.Pending() {
			break
		}
		if next, affected, err = next.Continue(t.Context(), Options{Now: at, Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{}
	for _, one := range next.instances {
		if _, known := r.find(one.Instance); !known {
			want[one.Instance.Name()] = 1
		}
	}
	if !maps.Equal(isNew, want) || len(want) != 2 {
		t.Errorf("new are %v, want %v", isNew, want)
	}
}

// Windows that pass leave nothing behind, and what changes after them is found.
func TestManyWindowsPass(t *testing.T) {
	plan, c, open := shifts(t)
	r, at := run(t, plan, c), now
	stranger := Instance{"worker", []string{"c", "fr", now.Add(-time.Hour).Format(time.RFC3339)}}
	r, _ = extend(t, r, c, Access{Instance: stranger})
	if _, known := r.Instance(stranger); !known {
		t.Fatal("the instance is not learnt: this test is about nothing")
	}
	expect := func(what string) {
		full, err := Run(t.Context(), plan, c.State(), Options{Now: at})
		if err != nil || canonical(r) != canonical(full) {
			t.Fatalf("%s\nfollowed\n%s\nfull run (%v)\n%s", what, canonical(r), err, canonical(full))
		}
	}
	for range keptWindows {
		var ok bool
		var err error
		if at, ok = r.NextExpiry(); !ok {
			t.Fatal("no window follows")
		}
		if r, _, err = r.Expire(t.Context(), Options{Now: at}); err != nil {
			t.Fatal(err)
		}
		expect("after a window")
	}
	for _, changed := range []func(*catalog.Catalog, ...policy.Fact) (*catalog.Change, error){removeFacts, addFacts} {
		change, err := changed(c, open)
		if err != nil {
			t.Fatal(err)
		}
		if r, _, err = r.Update(t.Context(), change, Options{Now: at}); err != nil {
			t.Fatal(err)
		}
		expect("after a fact")
	}
	at = now // the clock is set back
	r, _, err := r.Expire(t.Context(), Options{Now: at})
	if err != nil {
		t.Fatal(err)
	}
	expect("before the windows")
}

// What an active run keeps goes on as before: what time has given meanwhile is found, and what was left is.
func TestRunActiveGoesOn(t *testing.T) {
	plan, c := timed(t)
	if _, err := addFacts(c, instants()...); err != nil {
		t.Fatal(err)
	}
	r, later := run(t, plan, c), Options{Now: now.Add(36 * time.Hour)}
	r, err := RunActive(t.Context(), plan, c.State(), nil, r, later)
	if at, ok := r.NextExpiry(); err == nil && ok && !at.After(later.Now) {
		r, _, err = r.Expire(t.Context(), later)
	}
	full, failed := Run(t.Context(), plan, c.State(), later)
	if err != nil || failed != nil || canonical(r) != canonical(full) {
		t.Errorf("after some time\n%s\nfull run (%v, %v)\n%s", canonical(r), err, failed, canonical(full))
	}
	plan, c, _ = shifts(t)
	if _, err := addFacts(c, fact("list", "open-to", "b")); err != nil {
		t.Fatal(err)
	}
	r = run(t, plan, c)
	at, _ := r.NextExpiry()
	later = Options{Now: at, Limit: 1}
	if r, _, err = r.Expire(t.Context(), later); err != nil || !r.Pending() {
		t.Fatalf("nothing is left: this test is about nothing (%v)", err)
	}
	r, err = RunActive(t.Context(), plan, c.State(), nil, r, later)
	for err == nil && r.Pending() {
		r, _, err = r.Continue(t.Context(), later)
	}
	full, failed = Run(t.Context(), plan, c.State(), later)
	if err != nil || failed != nil || canonical(r) != canonical(full) {
		t.Errorf("of what was left\n%s\nfull run (%v, %v)\n%s", canonical(r), err, failed, canonical(full))
	}
}

// What an instance has learnt is decided on with all else of it: when it is new, when everything of it is asked
// again, and when a fact gives it more.
func TestLearntAccessesOfNewInstances(t *testing.T) {
	plan, c := unexpecting(t)
	of := classNamed(t, c, "/corpus/friends/bob/1.txt")
	r, _ := extend(t, run(t, plan, c), c, Access{aliceAbroad, of})
	if held, _ := r.Instance(aliceAbroad); !held.mayRead(of) {
		t.Error("a new instance does not learn what it has read")
	}
	plan, c = village(t)
	r, _ = extend(t, run(t, plan, c), c, Access{Instance: aliceAbroad})
	change, err := addFacts(c, fact("friends/carol", "friend", "alice"))
	r, _ = follow(t, r, change, err)
	plan.Remember([]Instance{aliceAbroad})
	if full := canonical(run(t, plan, c)); canonical(r) != full {
		t.Errorf("an instance that nobody foresaw does not follow a fact:\n%s\nfull run\n%s", canonical(r), full)
	}
}

// A task whose taint follows from facts is decided on anew with what it has learnt.
func TestLearntAccessesOfATaintOfFacts(t *testing.T) {
	plan, bundle := zooBundle(t)
	plan.Tasks[0].Reads = nil
	c := newCatalog(t, bundle)
	if _, _, err := c.Register([]string{"/d/open/a/1"}); err != nil {
		t.Fatal(err)
	}
	of := classNamed(t, c, "/d/open/a/1")
	club := Instance{Task: "club"}
	r, _ := extend(t, run(t, plan, c), c, Access{club, of})
	change, err := addFacts(c, fact("club", "vip", "a"))
	r, _ = follow(t, r, change, err)
	if held, _ := r.Instance(club); !held.mayRead(of) {
		t.Error("the task has lost what it has learnt and still may read")
	}
}

// A class that loses its last document is held by nobody, not even by who has learnt to read it.
func TestLearntClassesVanish(t *testing.T) {
	plan, c := unexpecting(t)
	bob := Instance{"worker", []string{"bob", "us"}}
	of := classNamed(t, c, "/corpus/public/1.txt") // of what is blocked in de
	r, _ := extend(t, run(t, plan, c), c, Access{bob, of})
	if held, _ := r.Instance(bob); !held.mayRead(of) {
		t.Fatal("nothing is learnt: this test is about nothing")
	}
	change, err := removeFacts(c, fact("blacklist/de", "blocked", "/corpus/public/1.txt"))
	r, _ = follow(t, r, change, err)
	if held, _ := r.Instance(bob); slices.Contains(held.Reads, of) {
		t.Error("a class without documents is still held")
	}
}

// So many questions that they become one lose nobody who is to be asked.
func TestManyQuestionsBecomeOne(t *testing.T) {
	plan, c := onePolicy(t, `read :- "list" says open(_). `+exit, "/d/a/1")
	plan.Sets = append(plan.Sets, Set{Name: "pipe", Catalog: "one/pipe", Kind: policy.PipeConduit, From: "indexer",
		To: "worker", Policy: &catalog.Reference{Policy: "documents"}})
	reader := plan.Tasks[1]
	reader.Name = "reader"
	plan.Tasks[0], plan.Tasks[1].Reads = reader, []string{"pipe"}
	for i := range maxQuestions {
		if _, err := addFacts(c, fact("population", "home", fmt.Sprint("user", i), "de")); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, plan, c)
	for i := 0; len(r.questions) != 1 || r.questions[0].what != askEverything; i++ {
		change, err := addFacts(c, fact("list", "open", fmt.Sprint(i)))
		if err != nil || i > 2*maxQuestions {
			t.Fatalf("questions do not become one: this test is about nothing (%v)", err)
		}
		if r, _, err = r.Update(t.Context(), change, Options{Now: now, Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for r.Pending() {
		var err error
		if r, _, err = r.Continue(t.Context(), Options{Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	if full := canonical(run(t, plan, c)); canonical(r) != full {
		t.Errorf("continued\n%s\nfull run\n%s", canonical(r), full)
	}
}

// A session that nobody foresaw gets the accesses to conduits without a class that an analysis of its instance finds.
func TestRunSingles(t *testing.T) {
	plan, c := village(t)
	singles, err := RunSingles(plan, c.State(), aliceAbroad, now)
	whole, failed := RunInstance(plan, c.State(), aliceAbroad, now)
	if err != nil || failed != nil || !slices.Equal(singles, whole.Others) || len(singles) == 0 {
		t.Errorf("%v (%v), want %v (%v)", singles, err, whole.Others, failed)
	}
}
