// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"hash/maphash"
	"slices"
	"sync"
)

// FactIndex is a set of facts that finds them by conduit, by relation and by any argument. It
// is immutable and safe for concurrent use; [FactIndex.Changed] makes the next one, which
// shares with it all that has not changed. The zero FactIndex is empty.
//
// A lookup with a conduit uses the index that leaves the fewest facts to look at: the sorted
// facts by their first arguments, or those by one other argument. One without a conduit looks
// at the conduits that have the rarest of the arguments.
type FactIndex struct {
	values    vector[Value]         // by valueID
	byValue   trie[Value, valueUse] // the groups that have a value as an argument
	groups    vector[*factGroup]    // by number
	byConduit trie[string, numbers] // the groups of a conduit
	size      int                   // tuples; one at several offsets counts once
}

// Facts returns the number of facts. A tuple at several offsets of a conduit counts once.
func (x *FactIndex) Facts() int { return x.size }

func hashConduit(conduit string) uint64 { return maphash.String(hashSeed, conduit) }

func (x *FactIndex) group(conduit, relation string, arity int, positioned bool) *factGroup {
	of := x.byConduit.get(hashConduit(conduit), conduit)
	if of == nil {
		return nil
	}
	for _, number := range *of {
		g := *x.groups.at(number)
		if int(g.key.Arity) == arity && g.key.Positioned == positioned && g.key.Relation == relation {
			return g
		}
	}
	return nil
}

func (x *FactIndex) groupOf(key GroupKey) *factGroup {
	return x.group(key.Conduit, key.Relation, int(key.Arity), key.Positioned)
}

// Has implements [Facts].
func (x *FactIndex) Has(pattern Pattern) bool {
	if pattern.Conduit != "" {
		g := x.group(pattern.Conduit, pattern.Relation, len(pattern.Arguments), pattern.Positioned)
		if g != nil && g.isSet() && pattern.Arguments[0].kind == StringValue {
			use := x.byValue.get(pattern.Arguments[0].hash(), pattern.Arguments[0])
			return pattern.Look() && use.in(g.set())
		}
		return g != nil && x.hasAny(g, &pattern)
	}
	for _, g := range x.candidates(&pattern) {
		if !pattern.Look() {
			return false
		}
		if x.hasAny(g, &pattern) {
			return true
		}
	}
	return false
}

func (x *FactIndex) hasAny(g *factGroup, pattern *Pattern) bool {
	s := x.scan(g, pattern)
	return s.next() != nil
}

// arguments are buffers for the arguments of facts that lookups yield.
var arguments = sync.Pool{New: func() any { return new([MaxArguments]Value) }}

// Lookup implements [Facts].
func (x *FactIndex) Lookup(pattern Pattern, yield func(Fact) bool) {
	buffer := arguments.Get().(*[MaxArguments]Value)
	defer arguments.Put(buffer)
	if pattern.Conduit != "" {
		if g := x.group(pattern.Conduit, pattern.Relation, len(pattern.Arguments), pattern.Positioned); g != nil {
			x.each(g, &pattern, buffer, yield)
		}
		return
	}
	for _, g := range x.candidates(&pattern) {
		if !pattern.Look() {
			return
		}
		if g.isSet() && pattern.Arguments[0].kind != Wildcard { // a candidate because it has this value
			if !pattern.Look() || !yield(Fact{Conduit: g.key.Conduit, Relation: g.key.Relation,
				Arguments: append(buffer[:0], pattern.Arguments[0])}) {
				return
			}
		} else if !x.each(g, &pattern, buffer, yield) {
			return
		}
	}
}

// each calls yield with the facts of a group that match, until yield returns false or no more
// rows may be looked at; it then returns false, too.
func (x *FactIndex) each(g *factGroup, pattern *Pattern, buffer *[MaxArguments]Value, yield func(Fact) bool) bool {
	s := x.scan(g, pattern)
	for row := s.next(); row != nil; row = s.next() {
		if !yield(x.fact(&g.key, row, buffer[:0])) {
			return false
		}
	}
	return !s.stopped
}

// fact returns the fact of a row, whose arguments it appends to buffer.
func (x *FactIndex) fact(key *GroupKey, row []valueID, buffer []Value) Fact {
	fact := Fact{Conduit: key.Conduit, Relation: key.Relation, Arguments: buffer}
	if key.Positioned {
		fact.Positioned, fact.Offset = true, x.value(row[0]).number
	}
	for _, id := range row[key.first() : key.first()+int(key.Arity)] {
		fact.Arguments = append(fact.Arguments, x.value(id))
	}
	return fact
}

// candidates returns the groups in which a pattern without a conduit may match, by conduit: by
// the argument that the fewest groups have, or all of the relation.
func (x *FactIndex) candidates(pattern *Pattern) (groups []*factGroup) {
	add := func(g *factGroup) {
		if g != nil && g.key.Relation == pattern.Relation && int(g.key.Arity) == len(pattern.Arguments) &&
			g.key.Positioned == pattern.Positioned {
			groups = append(groups, g)
		}
	}
	var rarest *valueUse
	for _, argument := range pattern.Arguments {
		if argument.kind == Wildcard {
			continue
		}
		use := x.byValue.get(argument.hash(), argument)
		if use == nil {
			return nil
		}
		if rarest == nil || len(use.groups) < len(rarest.groups) {
			rarest = use
		}
	}
	if rarest != nil {
		groups = make([]*factGroup, 0, len(rarest.groups))
		for _, number := range rarest.groups {
			add(*x.groups.at(number))
		}
	} else {
		for number := range x.groups.length {
			add(*x.groups.at(number))
		}
	}
	slices.SortFunc(groups, func(a, b *factGroup) int { return a.key.Compare(&b.key) })
	return groups
}

// Mentions calls yield with each relation of a conduit of which some fact contains the value,
// and with those of the conduit that has it as its name, by conduit, relation and number of
// arguments, until yield returns false.
func (x *FactIndex) Mentions(value Value, yield func(conduit, relation string, arguments int) bool) {
	var groups []*factGroup
	add := func(list numbers) {
		for _, number := range list {
			if g := *x.groups.at(number); !g.key.Positioned {
				groups = append(groups, g)
			}
		}
	}
	if use := x.byValue.get(value.hash(), value); use != nil {
		add(use.groups)
	}
	if value.kind == StringValue {
		if of := x.byConduit.get(hashConduit(value.text), value.text); of != nil {
			add(*of)
		}
	}
	slices.SortFunc(groups, func(a, b *factGroup) int { return a.key.Compare(&b.key) })
	for _, g := range slices.Compact(groups) {
		if !yield(g.key.Conduit, g.key.Relation, int(g.key.Arity)) {
			return
		}
	}
}

// IsMentioned reports whether some fact contains the value, or is in the conduit that has it as
// its name.
func (x *FactIndex) IsMentioned(value Value) bool {
	return x.byValue.get(value.hash(), value) != nil ||
		value.kind == StringValue && x.byConduit.get(hashConduit(value.text), value.text) != nil
}

// All calls yield with each fact in no particular order until yield returns false: with one
// that has an offset as such, and not also without.
func (x *FactIndex) All(yield func(Fact) bool) {
	for number := range x.groups.length {
		g := *x.groups.at(number)
		if g == nil {
			continue
		}
		for at := (rowPlace{}); at.before(g.rows.end()); at = g.rows.next(at) {
			fact := x.fact(&g.key, g.rows.row(at), nil)
			if !g.key.Positioned && x.isPositioned(&fact) {
				continue
			}
			if !yield(fact) {
				return
			}
		}
	}
}

// isPositioned reports whether a tuple is at some offset.
func (x *FactIndex) isPositioned(fact *Fact) bool {
	return x.Has(Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: fact.Arguments, Positioned: true})
}
