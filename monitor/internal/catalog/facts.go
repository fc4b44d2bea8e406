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

// groupKey identifies the tuples of one relation and arity in one conduit.
type groupKey struct {
	conduit, relation string
	arity             int
}

func (k *groupKey) compare(other *groupKey) int {
	return cmp.Or(strings.Compare(k.conduit, other.conduit), strings.Compare(k.relation, other.relation),
		cmp.Compare(k.arity, other.arity))
}

// group holds the tuples of one key, sorted by [policy.Value.Compare]. After it is
// published, it never changes, except that readers add columns.
type group struct {
	key    *groupKey
	count  int
	values []policy.Value // count tuples of key.arity values each

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
	if count >= columnThreshold && key.arity > 1 {
		g.columns = make([]column, key.arity-1)
	}
	return g
}

func (g *group) tuple(i int) []policy.Value {
	return g.values[i*g.key.arity : (i+1)*g.key.arity : (i+1)*g.key.arity]
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
// returns false; it then returns false. A zero Value selects anything.
func (g *group) matches(arguments []policy.Value, yield func([]policy.Value) bool) bool {
	bound := 0
	for bound < len(arguments) && arguments[bound].Kind() != policy.Wildcard {
		bound++
	}
	if bound > 0 || len(arguments) == 0 {
		start, _ := g.find(arguments[:bound])
		for i := start; i < g.count && compareTuples(g.tuple(i)[:bound], arguments[:bound]) == 0; i++ {
			if selects(arguments, g.tuple(i)) && !yield(g.tuple(i)) {
				return false
			}
		}
		return true
	}
	if g.columns != nil {
		for position := 1; position < len(arguments); position++ {
			if arguments[position].Kind() != policy.Wildcard {
				return g.matchColumn(position, arguments, yield)
			}
		}
	}
	for i := range g.count {
		if selects(arguments, g.tuple(i)) && !yield(g.tuple(i)) {
			return false
		}
	}
	return true
}

func (g *group) matchColumn(position int, arguments []policy.Value, yield func([]policy.Value) bool) bool {
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
		if selects(arguments, g.tuple(int(i))) && !yield(g.tuple(int(i))) {
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
	// sorted.
	mentions [factShards]map[policy.Value][]*groupKey
	size     int // tuples
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

// Lookup implements [policy.Facts]. Facts of the catalog have no offsets.
func (x *factIndex) Lookup(pattern policy.Pattern, yield func(policy.Fact) bool) {
	if pattern.Positioned {
		return
	}
	for _, g := range x.candidates(pattern) {
		fact := policy.Fact{Conduit: g.key.conduit, Relation: g.key.relation}
		more := g.matches(pattern.Arguments, func(tuple []policy.Value) bool {
			fact.Arguments = tuple
			return yield(fact)
		})
		if !more {
			return
		}
	}
}

// candidates returns the groups that may contain a match, by conduit. Without a conduit,
// it finds them by a bound argument; without either, it returns all groups.
func (x *factIndex) candidates(pattern policy.Pattern) []*group {
	arity := len(pattern.Arguments)
	if pattern.Conduit != "" {
		if g := x.group(groupKey{pattern.Conduit, pattern.Relation, arity}); g != nil {
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
				groups = append(groups, x.group(*key))
			}
		}
		return groups
	}
	for _, shard := range x.groups {
		for key, g := range shard {
			if key.relation == pattern.Relation && key.arity == arity {
				groups = append(groups, g)
			}
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return a.key.compare(b.key) })
	return groups
}
