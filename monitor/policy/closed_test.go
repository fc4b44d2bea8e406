// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// All policies of a template share what does not depend on the parameters, and nothing else.
func TestConditionsWithoutParametersAreShared(t *testing.T) {
	template, err := CompileText("p", []byte(`policy p(owner) { read :- sKeyIs("a").
		declassify :- isAsRestrictive(read, this.read) until cKindIs(descriptor).
		declassify :- isAsRestrictive(read, this.read) until cTypeIs(owner). }`))
	if err != nil {
		t.Fatal(err)
	}
	first, second := mustBindTemplate(t, template, "a"), mustBindTemplate(t, template, "b")
	shared := 0
	for _, one := range first.obligations[0].exits {
		for _, other := range second.obligations[0].exits {
			if one.condition == other.condition {
				shared++
			}
		}
	}
	if shared != 1 {
		t.Errorf("%d exits are shared, want that for descriptors only", shared)
	}
	for values, want := range map[[2]string]bool{{"a", "a"}: true, {"a", "b"}: false, {"b", "a"}: false} {
		held, demanded := mustBindTemplate(t, template, values[0]), mustBindTemplate(t, template, values[1])
		if ok, _ := labelIsAtLeast(held.Label("x"), demanded.Label("x"), stateOf(t), Environment{}); ok != want {
			t.Errorf("a label of p(%s) is at least as restrictive as one of p(%s): %v", values[0], values[1], ok)
		}
	}
}

// unshared returns the label without what spares comparisons.
func unshared(label Label) Label {
	duties := slices.Clone(label.duties)
	for i := range duties {
		duties[i].obligation = unsharedObligation(duties[i].obligation)
	}
	return Label{duties}
}

func unsharedObligation(o *obligation) *obligation {
	copied := *o
	copied.exits = slices.Clone(o.exits)
	for i := range copied.exits {
		e := &copied.exits[i]
		e.meaning, e.behind = meaning{}, slices.Clone(e.behind)
		for j := range e.behind {
			e.behind[j] = unsharedObligation(e.behind[j])
		}
	}
	return &copied
}

// Conditions that mean the same are not compared. A comparison of them gives the same answer.
func TestSameMeaningsNeedNoComparison(t *testing.T) {
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		first, second := rulePair(t)
		exits := exitText().Draw(t, "first exits")
		otherExits := exits
		if rapid.Bool().Draw(t, "other exits?") {
			otherExits = exitText().Draw(t, "second exits")
		}
		l1, l2 := drawPolicy(t, first, exits).Label("x"), drawPolicy(t, second, otherExits).Label("y")
		_, state := drawState(t, "facts")
		environment := Environment{Now: rapid.SampledFrom(instants).Draw(t, "now")}
		got, conditions := labelIsAtLeast(l1, l2, state, environment)
		want, compared := labelIsAtLeast(unshared(l1), unshared(l2), state, environment)
		if got != want || len(conditions) > len(compared) {
			t.Fatalf("%s\n⊒\n%s: %v under %v, and compared %v under %v", l1, l2, got, conditions, want, compared)
		}
		for _, d := range l1.duties {
			for _, e := range d.obligation.exits {
				if got && e.meaning != (meaning{}) {
					shared++
				}
			}
		}
	})
	if shared == 0 {
		t.Error("no condition was spared")
	}
}

// A decision's conditions in given memory are those that it has without.
func TestConditionsInGivenMemory(t *testing.T) {
	var memory []Condition
	for _, fact := range []string{`l says f ["a"]`, `l says f ["b"]`, `l says f ["c"]`} {
		state := stateOf(t, fact)
		name := fact[len(`l says f ["`):][:1]
		held := mustBind(t, `read :- sKeyIs("`+name+`").`).Label("")
		demanded := mustBind(t, `read :- sKeyIs(K), "l" says f(K).`).Label("")
		want := AtLeast(held, demanded, state, Environment{})
		got := AtLeast(held, demanded, state, Environment{Conditions: memory})
		if !got.Allowed || !slices.Equal(got.Conditions, want.Conditions) {
			t.Errorf("%v under %v, want under %v", got.Allowed, got.Conditions, want.Conditions)
		}
		if memory != nil && &memory[:1][0] != &got.Conditions[0] {
			t.Error("the memory was not used")
		}
		memory = got.Conditions
	}
}
