// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A fact base answers like a list of facts, whatever was added and removed before.
func TestFactBaseAgreesWithList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, list := NewFactBase(), map[string]Fact{}
		key := func(f Fact) string {
			return fmt.Sprint(f.Conduit, f.Relation, NewTuple(f.Arguments...), f.Positioned, f.Offset)
		}
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			fact := randomFact().Draw(t, "fact")
			_, there := list[key(fact)]
			if rapid.IntRange(0, 2).Draw(t, "remove?") == 0 {
				if base.Remove(fact) != there {
					t.Fatalf("removing %v: it was there: %v", fact, there)
				}
				delete(list, key(fact))
				continue
			}
			if added, err := base.Add(fact); err != nil || added == there {
				t.Fatalf("adding %v: added %v, %v; it was there: %v", fact, added, err, there)
			}
			list[key(fact)] = fact
		}
		if base.Len() != len(list) {
			t.Fatalf("%d facts, want %d", base.Len(), len(list))
		}
		checkLookups(t, base, list)
	})
}

func checkLookups(t *rapid.T, base *FactBase, list map[string]Fact) {
	pattern := Pattern{Relation: "f", Arguments: make([]Value, 1)}
	example := randomFact().Draw(t, "pattern")
	pattern.Relation, pattern.Arguments = example.Relation, slices.Clone(example.Arguments)
	if rapid.Bool().Draw(t, "any conduit?") {
		example.Conduit = ""
	}
	pattern.Conduit = example.Conduit
	for i := range pattern.Arguments {
		if rapid.Bool().Draw(t, "any argument?") {
			pattern.Arguments[i] = Value{}
		}
	}
	var want []Fact
	for _, fact := range list {
		matches := fact.Relation == pattern.Relation && len(fact.Arguments) == len(pattern.Arguments) &&
			(pattern.Conduit == "" || pattern.Conduit == fact.Conduit)
		for i := range pattern.Arguments {
			matches = matches && (pattern.Arguments[i].Kind() == Wildcard || pattern.Arguments[i] == fact.Arguments[i])
		}
		if matches {
			want = append(want, fact)
		}
	}
	slices.SortFunc(want, func(a, b Fact) int {
		if a.Conduit != b.Conduit {
			return strings.Compare(a.Conduit, b.Conduit)
		}
		return slices.CompareFunc(a.Arguments, b.Arguments, Value.Compare)
	})
	var got []Fact
	base.Lookup(pattern, func(fact Fact) bool {
		fact.Arguments = slices.Clone(fact.Arguments)
		got = append(got, fact)
		return true
	})
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v: got %v, want %v", pattern, got, want)
	}
	if base.Has(pattern) != (len(want) > 0) {
		t.Fatalf("%+v: Has is %v with matches %v", pattern, base.Has(pattern), want)
	}
}
