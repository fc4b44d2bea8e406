// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

// sourced is the tests' bundle with sources, which say what is given.
func sourced(hash string, own []policy.Fact, says map[string][]policy.Fact) Bundle {
	b := testBundle(hash)
	b.Facts = own
	b.Sources = slices.Sorted(maps.Keys(says))
	b.Fetched = map[string]Fetched{}
	for source, facts := range says {
		b.Fetched[source] = Fetched{Position: "0", Facts: facts}
	}
	return b
}

func applied(t testing.TB, c *Catalog, b Bundle) *Change {
	t.Helper()
	change, err := c.Apply(b)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func stands(c *Catalog, fact policy.Fact) bool {
	return c.State().Has(policy.Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments})
}

func TestSourcesOwnTheirFacts(t *testing.T) {
	c := opened(t)
	one, two, both, bundles := fact("a", "r", "one"), fact("a", "r", "two"), fact("a", "r", "both"),
		fact("a", "r", "bundles")
	expect := func(when string, facts map[string]bool) {
		t.Helper()
		for _, f := range []policy.Fact{one, two, both, bundles} {
			if name := f.Arguments[0].Text(); stands(c, f) != facts[name] {
				t.Errorf("%s: %s stands: %v", when, name, !facts[name])
			}
		}
	}
	applied(t, c, sourced("h1", []policy.Fact{bundles},
		map[string][]policy.Fact{"s1": {one, both, bundles}, "s2": {two, both}}))
	expect("applied", map[string]bool{"one": true, "two": true, "both": true, "bundles": true})
	if _, err := c.AtOnce().ReplaceSource("s1", Fetched{Position: "1"}); err != nil {
		t.Fatal(err)
	}
	expect("the first says nothing", map[string]bool{"two": true, "both": true, "bundles": true})
	change := applied(t, c, sourced("h2", nil, map[string][]policy.Fact{"s1": nil}))
	expect("the second is gone", map[string]bool{})
	if _, err := c.Revert(change); err != nil {
		t.Fatal(err)
	}
	expect("it is back", map[string]bool{"two": true, "both": true, "bundles": true})
	if status, known := c.Source("s2"); !known || status.Facts != 2 || status.Position != "0" {
		t.Errorf("the second has %+v", status)
	}
	applied(t, c, sourced("h3", nil, map[string][]policy.Fact{"s2": nil}))
	expect("the first and the bundle's own are gone; the second's were not fetched again",
		map[string]bool{"two": true, "both": true})
	if _, known := c.Source("s1"); known {
		t.Error("something is known of a source that the bundle does not have")
	}
	if _, err := c.AtOnce().ReplaceSource("s1", Fetched{}); err == nil {
		t.Error("a source that the bundle does not have was changed")
	}
	without := sourced("h4", nil, map[string][]policy.Fact{"s3": nil})
	without.Fetched = nil
	if _, err := c.Apply(without); err == nil ||
		!strings.Contains(err.Error(), "facts of source s3 were never fetched") {
		t.Errorf("a bundle whose facts are unknown is in force: %v", err)
	}
}

// A fact that somebody has removed by hand does not come back by itself.
func TestASourceLeavesWhatWasChangedByHand(t *testing.T) {
	c := opened(t)
	one, two := fact("a", "r", "one"), fact("a", "r", "two")
	applied(t, c, sourced("h1", nil, map[string][]policy.Fact{"s": {one}}))
	if _, err := removeFacts(c, one); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AtOnce().ReplaceSource("s", Fetched{Facts: []policy.Fact{one, two}}); err != nil {
		t.Fatal(err)
	}
	if stands(c, one) || !stands(c, two) {
		t.Error("the fact came back, or another did not come")
	}
}

func TestStepsAndPositionAreOne(t *testing.T) {
	directory := t.TempDir()
	c := open(t, directory)
	applied(t, c, sourced("h1", nil, map[string][]policy.Fact{"s": {fact("a", "r", "x", "y")}}))
	steps := []Step{
		{StepAdd, fact("a", "r", "one")}, {StepAdd, fact("a", "r", "two")}, {StepRemove, fact("a", "r", "one")},
		{StepAdd, fact("b", "r", "b")},
		{StepReplace, fact("a", "r", "three")}, {StepAdd, fact("a", "q", "four")},
	}
	if _, err := c.AtOnce().ChangeSource("s", "17", steps); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AtOnce().ChangeSource("s", "18", []Step{{StepAdd, fact("a", "r", "five")},
		{StepAdd, policy.Fact{}}}); err == nil {
		t.Error("a step without a fact was carried out")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = open(t, directory)
	status, _ := c.Source("s")
	if want := (SourceStatus{Position: "17", Facts: 3}); status != want {
		t.Errorf("after a restart %+v, want %+v", status, want)
	}
	want := []string{`a q("four")`, `a r("three")`, `b r("b")`}
	var got []string
	for _, f := range all(c.State()) {
		got = append(got, f.Conduit+" "+f.Relation+policy.NewTuple(f.Arguments...).String())
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever sources and bundle say, and in whatever order, the facts are exactly those
// that one of them says.
func TestFactsAreThoseThatSomebodySays(t *testing.T) {
	facts := []policy.Fact{fact("a", "r", "1"), fact("a", "r", "2"), fact("a", "r", "1", "2"), fact("b", "r", "1"),
		fact("a", "q", "1")}
	rapid.Check(t, func(rt *rapid.T) {
		c := open(t, t.TempDir())
		defer c.Close()
		says := map[string][]policy.Fact{"s1": nil, "s2": nil}
		own := rapid.SliceOf(rapid.SampledFrom(facts)).Draw(rt, "bundle")
		applied(t, c, sourced("h", own, says))
		for i := range 12 {
			source := rapid.SampledFrom([]string{"s1", "s2"}).Draw(rt, "source")
			next := rapid.SliceOfDistinct(rapid.SampledFrom(facts), factKey).Draw(rt, "facts")
			var err error
			if rapid.Bool().Draw(rt, "apply") {
				own = next
				applied(t, c, sourced(fmt.Sprint("h", i), own, says))
			} else {
				_, err = c.AtOnce().ReplaceSource(source, Fetched{Facts: next})
				says[source] = next
			}
			if err != nil {
				rt.Fatal(err)
			}
			said := map[string]bool{}
			for _, f := range slices.Concat(own, says["s1"], says["s2"]) {
				said[factKey(f)] = true
			}
			for _, f := range facts {
				if stands(c, f) != said[factKey(f)] {
					rt.Fatalf("%v stands: %v", f, stands(c, f))
				}
			}
		}
	})
}
