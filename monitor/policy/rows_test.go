// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// Facts that a decision looks at count, whether or not they match: without enough steps it ends
// with an error, and what it has not seen is not taken for absent.
func TestFactsThatDoNotMatchCount(t *testing.T) {
	base := NewFactBase()
	for i := range int64(1000) {
		if _, err := base.Add(Fact{Conduit: "big", Relation: "r", Arguments: []Value{Integer(i), Integer(i + 1),
			Integer(0)}}); err != nil {
			t.Fatal(err)
		}
	}
	state := StateOf(base, NewConduitTable())
	for text, holds := range map[string]bool{
		`read :- "big" says r(X, X, _).`:                      false,
		`read :- each in "big" says r(X, X, _) { eq(X, 1) }.`: true,
	} {
		rule := mustBind(t, "policy p { "+text+" }").Read("c")
		if got := evaluate(rule, state, Environment{}); got.Allowed != holds || got.Err != nil {
			t.Errorf("%s: allowed %v, %v", text, got.Allowed, got.Err)
		}
		if got := evaluate(rule, state, Environment{Steps: 500}); got.Allowed || !errors.Is(got.Err, ErrTooManySteps) {
			t.Errorf("%s with 500 steps: allowed %v, %v", text, got.Allowed, got.Err)
		}
	}
}

// bigState says s(i) and r("c", i, i+distance) of each i below count.
func bigState(t testing.TB, count, distance int64) State {
	t.Helper()
	return StateOf(bigFacts(t, count, distance), NewConduitTable())
}

func bigFacts(t testing.TB, count, distance int64) *FactIndex {
	t.Helper()
	var builder FactBuilder
	for i := range count {
		if err := builder.Add(Fact{Conduit: "big", Relation: "s", Arguments: []Value{Integer(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range count {
		if err := builder.Add(Fact{Conduit: "big", Relation: "r",
			Arguments: []Value{String("c"), Integer(i), Integer(i + distance)}}); err != nil {
			t.Fatal(err)
		}
	}
	return builder.Index()
}

// Of two large relations, each tuple of one is looked up in the other by its most selective
// argument, which is not the first. A policy that nothing satisfies ends with an error.
func TestJoinOfLargeRelations(t *testing.T) {
	rule := mustBind(t, `policy p { read :- "big" says s(X), "big" says r("c", _, X). }`).Read("c")
	for distance, want := range map[int64]error{0: nil, 20_000: nil, 100_000: ErrTooManySteps} {
		got := evaluate(rule, bigState(t, 100_000, distance), Environment{})
		if got.Allowed != (want == nil) || !errors.Is(got.Err, want) {
			t.Errorf("s(X) and r(\"c\", _, X), the first common X is %d: allowed %v, %v", distance, got.Allowed, got.Err)
		}
	}
}

func BenchmarkJoinOfLargeRelations(b *testing.B) {
	rule := mustBind(b, `policy p { read :- "big" says s(X), "big" says r("c", _, X). }`).Read("c")
	for _, distance := range []int64{20_000, 100_000} {
		state := bigState(b, 100_000, distance)
		b.Run(fmt.Sprint(distance), func(b *testing.B) {
			for b.Loop() {
				evaluate(rule, state, Environment{})
			}
		})
	}
}

// A fact takes few bytes: the friends of a population, each of whom many others have, too.
func TestFactsAreSmall(t *testing.T) {
	const people, friends, most = 2000, 100, 30
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var builder FactBuilder
	for person := range people {
		for friend := range friends {
			if err := builder.Add(Fact{Conduit: fmt.Sprint("friends/user", person), Relation: "friend",
				Arguments: []Value{String(fmt.Sprint("user", (person+1+friend*17)%people))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	index := builder.Index()
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / people / friends
	t.Logf("%.1f bytes a fact", each)
	if each > most || index.Facts() != people*friends {
		t.Errorf("%d facts take %.1f bytes each, want at most %d", index.Facts(), each, most)
	}
	runtime.KeepAlive(index)
}

// What decisions ask most often takes no memory.
func TestLookingForOneFactAllocatesNothing(t *testing.T) {
	state := bigState(t, 1000, 0)
	for _, pattern := range []Pattern{
		{Conduit: "big", Relation: "s", Arguments: []Value{Integer(7)}},
		{Conduit: "big", Relation: "s", Arguments: []Value{String("nobody")}},
		{Conduit: "big", Relation: "r", Arguments: []Value{{}, {}, Integer(7)}},
		{Conduit: "nowhere", Relation: "s", Arguments: []Value{Integer(7)}},
	} {
		state.Has(pattern)
		if count := testing.AllocsPerRun(100, func() { state.Has(pattern) }); count > 0 {
			t.Errorf("%+v: %.0f allocations", pattern, count)
		}
	}
}

// A change of a large relation copies a small part of it, also of its columns.
func TestChangeOfLargeRelationCopiesLittle(t *testing.T) {
	const most = 128 << 10 // bytes; the facts alone have 2 MB
	index := bigFacts(t, 100_000, 0)
	index.Has(Pattern{Conduit: "big", Relation: "r", Arguments: []Value{{}, {}, Integer(7)}}) // builds a column
	fact := Fact{Conduit: "big", Relation: "r", Arguments: []Value{String("c"), Integer(-1), Integer(50_000)}}
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		next, _, added, err := index.Changed(nil, []Fact{fact})
		runtime.ReadMemStats(&after)
		if copied := after.TotalAlloc - before.TotalAlloc; err != nil || len(added) != 1 || copied > most {
			t.Fatalf("added %v with %d bytes, want at most %d (%v)", added, copied, most, err)
		}
		index = next
		fact.Arguments = []Value{fact.Arguments[0], fact.Arguments[1], Integer(fact.Arguments[2].Number() - 7_000)}
	}
	found := 0
	index.Lookup(Pattern{Conduit: "big", Relation: "r", Arguments: []Value{{}, Integer(-1), {}}},
		func(Fact) bool { found++; return true })
	if found != 10 {
		t.Errorf("%d of the facts that were added are found", found)
	}
}

// Readers of one version build its columns, and read on while the next versions are made.
func TestReadersAtOnce(t *testing.T) {
	index := bigFacts(t, 2000, 0)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range int64(200) {
				if !index.Has(Pattern{Conduit: "big", Relation: "r", Arguments: []Value{{}, {}, Integer(i)}}) ||
					!index.Has(Pattern{Relation: "r", Arguments: []Value{{}, Integer(i), {}}}) {
					t.Errorf("r(_, _, %d) or r(_, %d, _) is missing", i, i)
				}
			}
		})
	}
	next := index
	for i := range int64(200) {
		var err error
		next, _, _, err = next.Changed([]Fact{{Conduit: "big", Relation: "r",
			Arguments: []Value{String("c"), Integer(i), Integer(i)}}}, []Fact{{Conduit: "big", Relation: "s",
			Arguments: []Value{String(fmt.Sprint("new", i))}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	readers.Wait()
	if next.Facts() != index.Facts() || index.Has(Pattern{Conduit: "big", Relation: "s",
		Arguments: []Value{String("new7")}}) {
		t.Errorf("%d facts, then %d", index.Facts(), next.Facts())
	}
}
