// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"shai.dev/monitor/policy"
)

func factAt(offset int64, conduit, relation string, values ...string) policy.Fact {
	f := fact(conduit, relation, values...)
	f.Positioned, f.Offset = true, offset
	return f
}

// factList is a plain list of facts, which changes in the way that the catalog's do.
type factList []policy.Fact

func bareKey(fact policy.Fact) string {
	fact.Positioned = false
	return factKey(fact)
}

func (l factList) without(gone func(policy.Fact) bool) factList {
	return slices.DeleteFunc(slices.Clone(l), gone)
}

func (l factList) remove(fact policy.Fact) factList {
	if fact.Positioned {
		return l.without(func(one policy.Fact) bool { return factKey(one) == factKey(fact) })
	}
	return l.without(func(one policy.Fact) bool { return bareKey(one) == bareKey(fact) })
}

func (l factList) add(fact policy.Fact) factList {
	if !fact.Positioned && slices.ContainsFunc(l, func(one policy.Fact) bool { return bareKey(one) == bareKey(fact) }) {
		return l
	}
	return append(l.without(func(one policy.Fact) bool {
		return factKey(one) == factKey(fact) || !one.Positioned && bareKey(one) == bareKey(fact)
	}), fact)
}

// lookup returns what a pattern selects, in order.
func (l factList) lookup(pattern policy.Pattern) (found []string) {
	var facts []policy.Fact
	for _, f := range l {
		if pattern.Positioned && !f.Positioned {
			continue
		}
		if f.Positioned = pattern.Positioned; !pattern.Positioned {
			f.Offset = 0
		}
		if (pattern.Conduit == "" || pattern.Conduit == f.Conduit) && pattern.Relation == f.Relation &&
			len(pattern.Arguments) == len(f.Arguments) && selects(pattern.Arguments, f.Arguments) &&
			(!pattern.Positioned || pattern.Offset.Kind() == policy.Wildcard || pattern.Offset.Number() == f.Offset) {
			facts = append(facts, f)
		}
	}
	slices.SortFunc(facts, func(a, b policy.Fact) int {
		if order := strings.Compare(a.Conduit, b.Conduit); order != 0 {
			return order
		}
		if a.Offset != b.Offset {
			return policy.Integer(a.Offset).Compare(policy.Integer(b.Offset))
		}
		return compareTuples(a.Arguments, b.Arguments)
	})
	for _, f := range facts {
		found = append(found, f.String())
	}
	return slices.Compact(found)
}

// Whatever is added and removed, with offsets and without, lookups answer like a list's, also
// after a restart; and what a change says can be reverted.
func TestPositionsAgreeWithAList(t *testing.T) {
	words := []string{"a", "b", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) (facts []policy.Fact) {
			for range rapid.IntRange(0, 8).Draw(rt, label) {
				f := fact(rapid.SampledFrom([]string{"log", "other"}).Draw(rt, "conduit"), "r")
				for range rapid.IntRange(0, 2).Draw(rt, "arity") {
					f.Arguments = append(f.Arguments, policy.String(rapid.SampledFrom(words).Draw(rt, "value")))
				}
				if rapid.Bool().Draw(rt, "positioned") {
					f.Positioned, f.Offset = true, rapid.Int64Range(0, 3).Draw(rt, "offset")
				}
				facts = append(facts, f)
			}
			return facts
		}
		dir := t.TempDir()
		c := open(t, dir)
		var list factList
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			remove, add := draw("remove"), draw("add")
			before, previous := dump(c.State())[1:], list
			change, err := c.ChangeFacts(remove, add)
			if err != nil {
				rt.Fatal(err)
			}
			for _, f := range remove {
				list = list.remove(f)
			}
			for _, f := range add {
				list = list.add(f)
			}
			checkPositions(rt, c.State(), list)
			if rapid.Bool().Draw(rt, "revert") {
				if _, err := c.ChangeFacts(change.Added, change.Removed); err != nil {
					rt.Fatal(err)
				}
				if diff := cmp.Diff(before, dump(c.State())[1:]); diff != "" {
					rt.Fatalf("reverted: %s", diff)
				}
				list = previous
			}
		}
		if err := c.Close(); err != nil {
			rt.Fatal(err)
		}
		again := open(t, dir)
		checkPositions(rt, again.State(), list)
		_ = again.Close()
	})
}

func checkPositions(rt *rapid.T, s *State, list factList) {
	rt.Helper()
	for _, conduit := range []string{"log", "other", ""} {
		for arity := range 3 {
			for _, positioned := range []bool{false, true} {
				pattern := policy.Pattern{Conduit: conduit, Relation: "r", Arguments: make([]policy.Value, arity),
					Positioned: positioned}
				if arity > 0 && rapid.Bool().Draw(rt, "bound") {
					pattern.Arguments[arity-1] = policy.String("a")
				}
				if positioned && rapid.Bool().Draw(rt, "at") {
					pattern.Offset = policy.Integer(1)
				}
				var got []string
				s.Lookup(pattern, func(f policy.Fact) bool {
					got = append(got, f.String())
					return true
				})
				if diff := cmp.Diff(list.lookup(pattern), got); diff != "" || s.Has(pattern) != (len(got) > 0) {
					rt.Fatalf("%+v: %s", pattern, diff)
				}
			}
		}
	}
}

// A tuple that a manifest or a source states is in no place of its conduit.
func TestOnlyContentHasOffsets(t *testing.T) {
	c := opened(t)
	for name, attempt := range map[string]func() error{
		"a bundle": func() error {
			_, err := c.Apply(sourced("2", []policy.Fact{factAt(1, "c", "r")}, nil))
			return err
		},
		"a source": func() error {
			_, err := c.Apply(sourced("3", nil, map[string][]policy.Fact{"s": {factAt(1, "c", "r")}}))
			return err
		},
	} {
		if err := attempt(); err == nil || !strings.Contains(err.Error(), "of manifests and of sources") {
			t.Errorf("%s: %v", name, err)
		}
	}
	applied(t, c, sourced("4", nil, map[string][]policy.Fact{"s": nil}))
	if _, err := c.ChangeSource("s", "1", []Step{{StepAdd, factAt(1, "c", "r")}}); err == nil {
		t.Error("a step has an offset")
	}
}
