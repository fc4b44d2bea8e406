// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"shai.dev/monitor/policy"
)

// groupKey identifies the tuples on disk of one relation and arity in one conduit that have
// offsets, or those that have none.
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

// groupChange is the change of one group: tuples to remove, then tuples to add.
type groupChange struct {
	key         groupKey
	remove, add [][]policy.Value
}

// groupChanges sorts changes by group, so that the result does not depend on their order.
func groupChanges(remove, add []policy.Fact) []*groupChange {
	byKey := make(map[groupKey]*groupChange)
	at := func(fact policy.Fact) *groupChange {
		key := keyOf(fact)
		change := byKey[key]
		if change == nil {
			change = &groupChange{key: key}
			byKey[key] = change
		}
		return change
	}
	for _, fact := range remove {
		change := at(fact)
		change.remove = append(change.remove, tupleOf(fact))
	}
	for _, fact := range add {
		change := at(fact)
		change.add = append(change.add, tupleOf(fact))
	}
	changes := slices.Collect(maps.Values(byKey))
	slices.SortFunc(changes, func(a, b *groupChange) int { return a.key.compare(&b.key) })
	return changes
}

// tupleOf returns the tuple by which a fact is in its group.
func tupleOf(fact policy.Fact) []policy.Value {
	if fact.Positioned {
		return append([]policy.Value{policy.Integer(fact.Offset)}, fact.Arguments...)
	}
	return fact.Arguments
}
