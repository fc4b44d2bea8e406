// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// askersOf returns the taints that were found for a label, without repetitions.
func askersOf(state State, taints []*Assumed, label Label) (found []int, complete bool) {
	demanded := new(Demands).Of(label)
	complete = NewAskers(state, taints).Of(&demanded, func(taint int) { found = append(found, taint) })
	slices.Sort(found)
	return slices.Compact(found), complete
}

// No taint that names a principal and covers a label is left out.
func TestAskersAreComplete(t *testing.T) {
	texts := []string{
		`read :- sKeyIs("a").`, `read :- sKeyIs("b").`, `read :- sKeyIs("b"), sRegionIs("r").`, `read :- sKeyIs("c").`,
		`read :- sRegionIs("s").`, ``,
	}
	seen := map[bool]int{} // by whether a taint covers a label of which all are found
	rapid.Check(t, func(t *rapid.T) {
		for range 5 { // a taint that covers a label is seldom
			exits := rapid.SampledFrom([]string{untilDescriptor, untilLater, never, untilResults})
			taintExit, dataExit := exits.Draw(t, "the taints' exit"), exits.Draw(t, "the data's exit")
			bodies := rapid.SliceOfN(rapid.OneOf(bodyText(), rapid.SampledFrom([]string{
				`sKeyIs("a")`, `sKeyIs(K), "p" says f(K)`, `sKeyIs(K), concat(L, "l/", "a"), L says f(K), sRegionIs("r")`,
				`concat(K, "", "b"), sKeyIs(K)`, `sKeyIs(K), "p" says g(K, "a")`, `sKeyIs(K), "p" says f(K), "p" says g(K, _)`, `sKeyIs(K), concat(L, "l/", K), L says f("a")`,
			})), 0, 3).Draw(t, "read")
			label := drawPolicy(t, bodies, dataExit).Label("x")
			facts, _ := drawState(t, "facts")
			state := StateOf(indexed(t, facts), NewConduitTable())
			held, assumed := make([]Label, len(texts)), make([]*Assumed, len(texts))
			for i, text := range texts {
				held[i] = mustBind(t, text+taintExit).Label("task")
				one := Assume(state, held[i])
				assumed[i] = &one
			}
			found, complete := askersOf(state, assumed, label)
			for i, taint := range held {
				covers := AtLeast(taint, label, state, Environment{Now: noon}).Allowed
				if !complete || assumed[i].Principal() == "" {
					continue
				}
				seen[covers]++
				if covers && !slices.Contains(found, i) {
					t.Fatalf("%q covers the label, but is not among %v\n%s", texts[i], found, ruleText("read", bodies))
				}
			}
		}
	})
	if !t.Failed() && (seen[false] == 0 || seen[true] == 0) {
		t.Errorf("seen %v: the test has become too weak", seen)
	}
}

// Of friends' documents the reader is looked up in the list: nobody else is found.
func TestAskers(t *testing.T) {
	policies := sysePolicies(t)
	state := StateOf(indexed(t, []Fact{mustFact(t, `friends/alice says friend ["bob"]`),
		mustFact(t, `friends/bob says friend ["alice"]`), mustFact(t, `friends/bob says friend ["dave"]`)}), NewConduitTable())
	var taints []*Assumed
	for _, name := range []string{"alice", "bob", "carol", "alice"} {
		taint := Assume(state, mustBindTemplate(t, policies["worker"], name, "de").Label("worker"))
		taints = append(taints, &taint)
	}
	taints = append(taints, nil)
	tests := []struct {
		policy   string
		want     []int
		complete bool
	}{
		{"private", []int{1}, true},
		{"friends", []int{0, 1, 3}, true},
		{"friends-of-friends", nil, false}, // a join of lists
	}
	for _, test := range tests {
		label := mustBindTemplate(t, policies[test.policy], "bob").Label("/corpus/1.txt")
		found, complete := askersOf(state, taints, label)
		if complete != test.complete || complete && !slices.Equal(found, test.want) {
			t.Errorf("%s: found %v, complete: %v; want %v", test.policy, found, complete, test.want)
		}
	}
	label := new(Demands).Of(mustBindTemplate(t, policies["friends"], "bob").Label("/corpus/1.txt"))
	for left, want := range map[int64]bool{2: true, 1: false} {
		askers := NewAskers(state, taints)
		askers.left.Store(left)
		if complete := askers.Of(&label, func(int) {}); complete != want {
			t.Errorf("with %d members of sets to look at: %v", left, complete)
		}
	}
	if NewAskers(StateOf(baseOf(nil), NewConduitTable()), taints) != nil {
		t.Error("taints are found in facts without an index")
	}
}
