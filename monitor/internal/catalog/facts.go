// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"shai.dev/monitor/policy"
)

// factShards is the number of parts of the index: a change copies the shards that it
// touches and shares the others with the states that readers still use.
const factShards = 1024

// groupKey identifies the tuples of one relation and arity in one conduit, or, of these,
// those with an offset.
type groupKey struct {
	conduit, relation string
	arity             int
	positioned        bool
}

func keyOf(fact policy.Fact) groupKey {
	return groupKey{fact.Conduit, fact.Relation, len(fact.Arguments), fact.Positioned}
}

// width is the number of a tuple's values: a positioned one begins with its offset.
func (k *groupKey) width() int {
	if k.positioned {
		return k.arity + 1
	}
	return k.arity
}

func (k *groupKey) compare(other *groupKey) int {
	order := cmp.Or(strings.Compare(k.conduit, other.conduit), strings.Compare(k.relation, other.relation),
		cmp.Compare(k.arity, other.arity))
	switch {
	case order != 0 || k.positioned == other.positioned:
		return order
	case k.positioned:
		return 1
	}
	return -1
}

// group holds the tuples of one key, sorted by [policy.Value.Compare]. After it is
// published, it never changes, except that readers add columns.
type group struct {
	key    *groupKey
	count  int
	values []policy.Value // count tuples of key.width() values each

	columns []column // per argument after the first; nil in small groups
}

// column finds tuples by one argument. It is built at its first use.
type column struct {
	once   sync.Once
	tuples map[policy.Value][]int32
}

// columnThreshold is the number of tuples from which an index is faster than a scan.
const columnThreshold = 64

func newGroup(key *groupKey, count int, values []policy.Value) *group {
	g := &group{key: key, count: count, values: values}
	if count >= columnThreshold && key.width() > 1 {
		g.columns = make([]column, key.width()-1)
	}
	return g
}

func (g *group) tuple(i int) []policy.Value {
	width := g.key.width()
	return g.values[i*width : (i+1)*width : (i+1)*width]
}

func compareTuples(a, b []policy.Value) int {
	return slices.CompareFunc(a, b, policy.Value.Compare)
}

// find returns the position of a tuple, or the position at which it would be.
func (g *group) find(tuple []policy.Value) (int, bool) {
	low, high := 0, g.count
	for low < high {
		middle := int(uint(low+high) >> 1)
		if compareTuples(g.tuple(middle), tuple) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < g.count && compareTuples(g.tuple(low), tuple) == 0
}

// matches calls yield with each tuple that the arguments select, in order, until yield
// returns false or pattern counts no more rows; it then returns false. A zero Value selects
// anything.
func (g *group) matches(pattern *policy.Pattern, arguments []policy.Value, yield func([]policy.Value) bool) bool {
	bound := 0
	for bound < len(arguments) && arguments[bound].Kind() != policy.Wildcard {
		bound++
	}
	if bound > 0 || len(arguments) == 0 {
		start, _ := g.find(arguments[:bound])
		for i := start; i < g.count && compareTuples(g.tuple(i)[:bound], arguments[:bound]) == 0; i++ {
			if !pattern.Look() || selects(arguments, g.tuple(i)) && !yield(g.tuple(i)) {
				return false
			}
		}
		return true
	}
	if g.columns != nil {
		for position := 1; position < len(arguments); position++ {
			if arguments[position].Kind() != policy.Wildcard {
				return g.matchColumn(position, pattern, arguments, yield)
			}
		}
	}
	for i := range g.count {
		if !pattern.Look() || selects(arguments, g.tuple(i)) && !yield(g.tuple(i)) {
			return false
		}
	}
	return true
}

func (g *group) matchColumn(position int, pattern *policy.Pattern, arguments []policy.Value,
	yield func([]policy.Value) bool) bool {
	c := &g.columns[position-1]
	c.once.Do(func() {
		c.tuples = make(map[policy.Value][]int32)
		for i := range g.count {
			value := g.tuple(i)[position]
			c.tuples[value] = append(c.tuples[value],
				int32(i))
		}
	})
	for _, i := range c.tuples[arguments[position]] {
		if !pattern.Look() || selects(arguments, g.tuple(int(i))) && !yield(g.tuple(int(i))) {
			return false
		}
	}
	return true
}

func selects(arguments, tuple []policy.Value) bool {
	for i, argument := range arguments {
		if argument.Kind() != policy.Wildcard && argument != tuple[i] {
			return false
		}
	}
	return true
}

// factIndex holds all facts. It is immutable; changed makes the next one.
type factIndex struct {
	groups [factShards]map[groupKey]*group
	// mentions finds the groups that contain a value, or whose conduit has it as a name,
	// sorted. Groups of tuples with offsets are left out: each has a twin without.
	mentions [factShards]map[policy.Value][]*groupKey
	size     int // tuples; one at several offsets counts once
}

// Facts returns the number of tuples.
func (x *factIndex) Facts() int { return x.size }

var (
	groupSeed = maphash.MakeSeed()
	valueSeed = maphash.MakeSeed()
)

func groupShard(key groupKey) int { return int(maphash.Comparable(groupSeed, key) % factShards) }

func valueShard(value policy.Value) int {
	return int(maphash.Comparable(valueSeed, value) % factShards)
}

func (x *factIndex) group(key groupKey) *group { return x.groups[groupShard(key)][key] }

func (x *factIndex) mentioning(value policy.Value) []*groupKey {
	return x.mentions[valueShard(value)][value]
}

// Has implements [policy.Facts].
func (x *factIndex) Has(pattern policy.Pattern) bool {
	found := false
	x.Lookup(pattern, func(policy.Fact) bool {
		found = true
		return false
	})
	return found
}

// Lookup implements [policy.Facts].
func (x *factIndex) Lookup(pattern policy.Pattern, yield func(policy.Fact) bool) {
	selected := pattern.Arguments
	if pattern.Positioned {
		selected = append([]policy.Value{pattern.Offset}, pattern.Arguments...)
	}
	for _, g := range x.candidates(pattern) {
		more := g.matches(&pattern, selected, func(tuple []policy.Value) bool { return yield(g.key.fact(tuple)) })
		if !more {
			return
		}
	}
}

// fact returns the fact of a tuple of the group, whose values it shares.
func (k *groupKey) fact(tuple []policy.Value) policy.Fact {
	fact := policy.Fact{Conduit: k.conduit, Relation: k.relation, Arguments: tuple}
	if k.positioned {
		fact.Positioned, fact.Offset, fact.Arguments = true, tuple[0].Number(), tuple[1:]
	}
	return fact
}

// candidates returns the groups that may contain a match, by conduit. Without a conduit,
// it finds them by a bound argument; without either, it returns all groups.
func (x *factIndex) candidates(pattern policy.Pattern) []*group {
	arity := len(pattern.Arguments)
	if pattern.Conduit != "" {
		if g := x.group(groupKey{pattern.Conduit, pattern.Relation, arity, pattern.Positioned}); g != nil {
			return []*group{g}
		}
		return nil
	}
	var groups []*group
	for _, argument := range pattern.Arguments {
		if argument.Kind() == policy.Wildcard {
			continue
		}
		for _, key := range x.mentioning(argument) {
			if key.relation == pattern.Relation && key.arity == arity {
				wanted := *key
				wanted.positioned = pattern.Positioned
				if g := x.group(wanted); g != nil {
					groups = append(groups, g)
				}
			}
		}
		return groups
	}
	for _, shard := range x.groups {
		for key, g := range shard {
			if key.relation == pattern.Relation && key.arity == arity && key.positioned == pattern.Positioned {
				groups = append(groups, g)
			}
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return a.key.compare(b.key) })
	return groups
}
