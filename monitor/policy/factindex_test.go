// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// factList is a plain list of facts by their text, which changes as an index does.
type factList map[string]Fact

func (f Fact) bare() Fact {
	f.Positioned, f.Offset = false, 0
	return f
}

// someOffsets are all that facts have in these tests.
var someOffsets = []int64{0, 1, 2, -1, 1<<31 - 1, 1 << 31, 1 << 40}

func (f Fact) at(offset int64) Fact {
	f.Positioned, f.Offset = true, offset
	return f
}

func (l factList) remove(fact Fact) {
	delete(l, fact.String())
	if !fact.Positioned {
		for _, offset := range someOffsets {
			delete(l, fact.at(offset).String())
		}
	}
}

func (l factList) add(fact Fact) {
	if fact.Positioned {
		delete(l, fact.bare().String())
	} else if slices.ContainsFunc(someOffsets, func(offset int64) bool { return l.has(fact.at(offset)) }) {
		return
	}
	l[fact.String()] = fact
}

func (l factList) has(fact Fact) bool {
	_, stands := l[fact.String()]
	return stands
}

// lookup returns what a pattern selects, in order.
func (l factList) lookup(pattern Pattern) []string {
	found := make(map[string]Fact)
	for _, fact := range l {
		if !pattern.Positioned {
			fact = fact.bare()
		}
		if fact.Positioned == pattern.Positioned && (pattern.Conduit == "" || pattern.Conduit == fact.Conduit) &&
			pattern.Relation == fact.Relation && len(pattern.Arguments) == len(fact.Arguments) &&
			pattern.selects(fact) {
			found[fact.String()] = fact
		}
	}
	facts := slices.SortedFunc(maps.Values(found), func(a, b Fact) int {
		if order := strings.Compare(a.Conduit, b.Conduit); order != 0 {
			return order
		}
		if a.Offset != b.Offset {
			return Integer(a.Offset).Compare(Integer(b.Offset))
		}
		return slices.CompareFunc(a.Arguments, b.Arguments, Value.Compare)
	})
	return factTexts(facts)
}

func factTexts(facts []Fact) []string {
	texts := []string{}
	for _, fact := range facts {
		texts = append(texts, fact.String())
	}
	return texts
}

// drawn makes random facts of many groups, or of few that get large.
type drawn struct {
	random *rand.Rand
	narrow bool
}

func (d drawn) value(spread int) Value {
	number := int64(d.random.IntN(spread))
	switch d.random.IntN(4) {
	case 0:
		return Integer(number - 3)
	case 1:
		return Integer(1<<31 + number - 2) // where numbers no longer stand for themselves
	case 2:
		return Value{kind: TimeValue, number: number}
	}
	return String(fmt.Sprint("v", number))
}

func (d drawn) fact(spread int) Fact {
	fact := Fact{Conduit: []string{"c", "d"}[d.random.IntN(2)], Relation: []string{"r", "s"}[d.random.IntN(2)]}
	arity := d.random.IntN(4)
	if d.narrow {
		fact.Conduit, arity = "c", 2
	}
	for range arity {
		fact.Arguments = append(fact.Arguments, d.value(spread))
	}
	if fact.Relation == "s" && d.random.IntN(3) > 0 {
		fact = fact.at(someOffsets[d.random.IntN(len(someOffsets))])
	}
	return fact
}

func (d drawn) pattern(list factList, spread int) Pattern {
	example := d.fact(spread)
	if known := slices.Sorted(maps.Keys(list)); len(known) > 0 && d.random.IntN(3) > 0 {
		example = list[known[d.random.IntN(len(known))]]
	}
	pattern := Pattern{Conduit: example.Conduit, Relation: example.Relation, Arguments: slices.Clone(example.Arguments),
		Positioned: example.Positioned && d.random.IntN(3) > 0}
	if pattern.Positioned && d.random.IntN(2) > 0 {
		pattern.Offset = Integer(example.Offset)
	}
	if d.random.IntN(3) == 0 {
		pattern.Conduit = ""
	}
	for i := range pattern.Arguments {
		if d.random.IntN(2) == 0 {
			pattern.Arguments[i] = Value{}
		}
	}
	return pattern
}

func (d drawn) batch(most, spread int) (facts []Fact) {
	for range d.random.IntN(most + 1) {
		facts = append(facts, d.fact(spread))
	}
	return facts
}

// An index answers like a list of facts, whatever was changed before. A change leaves the
// version before it as it was, says what it did, and can be reverted.
func TestIndexAgreesWithList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		d := drawn{random: rand.New(rand.NewPCG(seed, 0))}
		most, spread := []int{6, 6, 60, 60, 700}[d.random.IntN(5)], []int{2, 9, 400}[d.random.IntN(3)]
		d.narrow = most > 100
		index, list := new(FactIndex), factList{}
		for range 3 {
			remove, add := d.batch(most, spread), d.batch(most, spread)
			for _, text := range slices.Sorted(maps.Keys(list)) {
				if d.random.IntN(4) == 0 {
					remove = append(remove, list[text])
				}
			}
			next, removed, added, err := index.Changed(remove, add)
			if err != nil {
				t.Fatal(err)
			}
			checkIndex(t, d, index, list, spread)
			after := maps.Clone(list)
			for _, fact := range remove {
				after.remove(fact)
			}
			for _, fact := range add {
				after.add(fact)
			}
			checkChange(t, list, after, removed, added)
			checkIndex(t, d, next, after, spread)
			reverted, _, _, err := next.Changed(added, removed)
			if err != nil {
				t.Fatal(err)
			}
			checkIndex(t, d, reverted, list, spread)
			index, list = next, after
		}
		checkIndex(t, d, rebuilt(t, index), list, spread)
		gone, _, _, _ := index.Changed(slices.Collect(maps.Values(list)), nil)
		checkIndex(t, d, gone, factList{}, spread)
		if used := *gone; used.values.length > 0 && len(slices.Collect(usedValues(&used))) > 0 {
			t.Fatal("an empty index has values")
		}
	})
}

// usedValues yields the values of an index that are found by their texts.
func usedValues(x *FactIndex) func(func(Value) bool) {
	return func(yield func(Value) bool) {
		for number := range x.values.length {
			value := *x.values.at(number)
			if x.byValue.get(value.hash(), value) != nil && !yield(value) {
				return
			}
		}
	}
}

func checkChange(t *rapid.T, before, after factList, removed, added []Fact) {
	gone, come := maps.Clone(before), maps.Clone(after)
	maps.DeleteFunc(gone, func(text string, _ Fact) bool { _, stays := after[text]; return stays })
	maps.DeleteFunc(come, func(text string, _ Fact) bool { _, stood := before[text]; return stood })
	for _, one := range []struct {
		what  string
		facts []Fact
		want  factList
	}{{"removed", removed, gone}, {"added", added, come}} {
		got := factTexts(one.facts)
		slices.Sort(got)
		if diff := cmp.Diff(append([]string{}, slices.Sorted(maps.Keys(one.want))...), got); diff != "" {
			t.Fatalf("%s: %s", one.what, diff)
		}
	}
}

func rebuilt(t *rapid.T, x *FactIndex) *FactIndex {
	var facts []Fact
	x.All(func(fact Fact) bool { facts = append(facts, fact); return true })
	slices.SortFunc(facts, func(a, b Fact) int { k, l := a.Group(), b.Group(); return k.Compare(&l) })
	var b FactBuilder
	for _, fact := range facts {
		if err := b.Add(fact); err != nil {
			t.Fatal(err)
		}
	}
	return b.Index()
}

func checkIndex(t *rapid.T, d drawn, x *FactIndex, list factList, spread int) {
	var all []Fact
	x.All(func(fact Fact) bool { all = append(all, fact); return true })
	got := factTexts(all)
	slices.Sort(got)
	if diff := cmp.Diff(append([]string{}, slices.Sorted(maps.Keys(list))...), got); diff != "" {
		t.Fatalf("all facts: %s", diff)
	}
	tuples := make(map[string]bool)
	for _, fact := range list {
		tuples[fact.bare().String()] = true
	}
	if x.Facts() != len(tuples) {
		t.Fatalf("%d facts, want %d", x.Facts(), len(tuples))
	}
	for range 8 {
		checkPattern(t, x, list, d.pattern(list, spread), d.random.IntN(20))
	}
	checkMentions(t, x, list, d.value(spread))
	checkMentions(t, x, list, String("c"))
}

// checkPattern compares lookups with all rows, and with few.
func checkPattern(t *rapid.T, x *FactIndex, list factList, pattern Pattern, few int) {
	want := list.lookup(pattern)
	got := []string{}
	x.Lookup(pattern, func(fact Fact) bool { got = append(got, fact.String()); return true })
	if diff := cmp.Diff(want, got); diff != "" || x.Has(pattern) != (len(want) > 0) {
		t.Fatalf("%+v: %s (Has: %v)", pattern, diff, x.Has(pattern))
	}
	rows := few
	pattern.Rows = &rows
	got = []string{}
	x.Lookup(pattern, func(fact Fact) bool { got = append(got, fact.String()); return true })
	if rows < 0 || len(got) > few || !slices.Equal(got, want[:min(len(got), len(want))]) ||
		rows > 0 && len(got) < len(want) {
		t.Fatalf("%+v with %d rows: %v, %d left; without a limit %v", pattern, few, got, rows, want)
	}
	rows = few
	if x.Has(pattern) != (len(want) > 0) && rows > 0 {
		t.Fatalf("%+v with %d rows: Has is wrong with %d left", pattern, few, rows)
	}
}

func checkMentions(t *rapid.T, x *FactIndex, list factList, value Value) {
	want := make(map[string]bool)
	for _, fact := range list {
		if String(fact.Conduit) == value || slices.Contains(fact.Arguments, value) {
			want[fmt.Sprint(fact.Conduit, " ", fact.Relation, " ", len(fact.Arguments))] = true
		}
	}
	got := []string{}
	x.Mentions(value, func(conduit, relation string, arguments int) bool {
		got = append(got, fmt.Sprint(conduit, " ", relation, " ", arguments))
		return true
	})
	if diff := cmp.Diff(append([]string{}, slices.Sorted(maps.Keys(want))...), got); diff != "" {
		t.Fatalf("mentions of %s: %s", value, diff)
	}
}
