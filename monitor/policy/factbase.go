// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ErrInvalidFact is wrapped by the errors of [FactBase.Add].
var ErrInvalidFact = errors.New("invalid fact")

// String returns the fact in the form of policies: "c"@5 says t("a", 1).
func (f Fact) String() string {
	place := strconv.Quote(f.Conduit)
	if f.Positioned {
		place += "@" + strconv.FormatInt(f.Offset, 10)
	}
	return place + " says " + f.Relation + NewTuple(f.Arguments...).String()
}

// check reports why the fact cannot be in a conduit.
func (f Fact) check() error {
	switch {
	case f.Conduit == "":
		return fmt.Errorf("%w: says %s: the conduit's name is empty", ErrInvalidFact, f.Relation)
	case f.Relation == "":
		return fmt.Errorf("%w in conduit %q: the relation's name is empty", ErrInvalidFact, f.Conduit)
	case len(f.Arguments) > MaxArguments:
		return fmt.Errorf("%w: %q says %s: %d arguments: %w (at most %d)",
			ErrInvalidFact, f.Conduit, f.Relation, len(f.Arguments), ErrTooManyArguments, MaxArguments)
	}
	for i, argument := range f.Arguments {
		if !argument.concrete() {
			return fmt.Errorf("%w: %q says %s: argument %d is no string, integer or time",
				ErrInvalidFact, f.Conduit, f.Relation, i+1)
		}
	}
	return nil
}

// FactBase is a set of facts in memory, for programs and tests without a fact store of
// their own. Several goroutines may read it at once; a writer must be alone.
//
// A lookup of one fact in one conduit is a binary search. Any other lookup examines all
// facts of the conduit with the relation, or, without a conduit, those of every conduit.
type FactBase struct {
	groups map[factGroup]map[string][]Fact // by conduit; sorted
	live   int
}

// factGroup is the key of facts that one pattern may select.
type factGroup struct {
	relation   string
	arguments  int
	positioned bool
}

// NewFactBase returns an empty set.
func NewFactBase() *FactBase { return &FactBase{groups: make(map[factGroup]map[string][]Fact)} }

// Len returns the number of facts. A tuple at several offsets of a conduit counts once.
func (b *FactBase) Len() int { return b.live }

// Add adds a fact and reports whether it was new. A positioned fact also matches patterns
// without an offset.
func (b *FactBase) Add(fact Fact) (bool, error) {
	if err := fact.check(); err != nil {
		return false, err
	}
	fact.Arguments = slices.Clone(fact.Arguments)
	plain := fact
	plain.Positioned, plain.Offset = false, 0
	added := b.insert(plain)
	if added {
		b.live++
	}
	if fact.Positioned {
		added = b.insert(fact)
	}
	return added, nil
}

// Remove removes a fact and reports whether it was there. Without a position it is
// removed from every offset of the conduit.
func (b *FactBase) Remove(fact Fact) bool {
	plain := fact
	plain.Positioned, plain.Offset = false, 0
	if fact.Positioned {
		if !b.delete(fact) {
			return false
		}
		if b.Has(Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments, Positioned: true}) {
			return true
		}
	}
	if !b.delete(plain) {
		return false
	}
	b.live--
	if places := b.groups[plain.group(true)]; places != nil {
		places[fact.Conduit] = slices.DeleteFunc(places[fact.Conduit], fact.same)
	}
	return true
}

func (f Fact) group(positioned bool) factGroup {
	return factGroup{f.Relation, len(f.Arguments), positioned}
}

// compare orders the facts of one conduit and group.
func (f Fact) compare(other Fact) int {
	return cmp.Or(cmp.Compare(f.Offset, other.Offset), slices.CompareFunc(f.Arguments, other.Arguments, Value.Compare))
}

func (b *FactBase) insert(fact Fact) bool {
	group := b.groups[fact.group(fact.Positioned)]
	if group == nil {
		group = make(map[string][]Fact)
		b.groups[fact.group(fact.Positioned)] = group
	}
	at, found := slices.BinarySearchFunc(group[fact.Conduit], fact, Fact.compare)
	if !found {
		group[fact.Conduit] = slices.Insert(group[fact.Conduit], at, fact)
	}
	return !found
}

func (b *FactBase) delete(fact Fact) bool {
	group := b.groups[fact.group(fact.Positioned)]
	at, found := slices.BinarySearchFunc(group[fact.Conduit], fact, Fact.compare)
	if found {
		group[fact.Conduit] = slices.Delete(group[fact.Conduit], at, at+1)
	}
	return found
}

// Has implements [Facts].
func (b *FactBase) Has(pattern Pattern) bool {
	found := false
	b.Lookup(pattern, func(Fact) bool { found = true; return false })
	return found
}

// Lookup implements [Facts].
func (b *FactBase) Lookup(pattern Pattern, yield func(Fact) bool) {
	group := b.groups[factGroup{pattern.Relation, len(pattern.Arguments), pattern.Positioned}]
	if pattern.Conduit != "" {
		pattern.among(group[pattern.Conduit], yield)
		return
	}
	for _, conduit := range slices.Sorted(maps.Keys(group)) {
		if !pattern.among(group[conduit], yield) {
			return
		}
	}
}

// among yields the facts of a sorted list that the pattern selects, until yield returns
// false; it then returns false, too.
func (p Pattern) among(facts []Fact, yield func(Fact) bool) bool {
	if p.isExact() {
		if !p.Look() {
			return false
		}
		exact := Fact{Arguments: p.Arguments}
		if p.Positioned {
			exact.Offset = p.Offset.number
		}
		at, found := slices.BinarySearchFunc(facts, exact, Fact.compare)
		return !found || yield(facts[at])
	}
	for _, fact := range facts {
		if !p.Look() {
			return false
		}
		if p.selects(fact) && !yield(fact) {
			return false
		}
	}
	return true
}

// isExact reports whether the pattern fixes everything but the conduit.
func (p Pattern) isExact() bool {
	open := func(value Value) bool { return value.kind == Wildcard }
	return !slices.ContainsFunc(p.Arguments, open) && (!p.Positioned || p.Offset.kind == IntegerValue)
}

// selects reports whether a fact of the pattern's group has the pattern's values.
func (p Pattern) selects(fact Fact) bool {
	if p.Positioned && p.Offset.kind != Wildcard && p.Offset != Integer(fact.Offset) {
		return false
	}
	for i, argument := range p.Arguments {
		if argument.kind != Wildcard && argument != fact.Arguments[i] {
			return false
		}
	}
	return true
}
