// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"maps"
	"slices"

	"shai.dev/monitor/policy"
)

// widthOf returns the number of a tuple's values on disk: a positioned one begins with its offset.
func widthOf(group policy.GroupKey) int {
	if group.Positioned {
		return int(group.Arity) + 1
	}
	return int(group.Arity)
}

// groupChange is the change of one group: tuples to remove, then tuples to add.
type groupChange struct {
	key         policy.GroupKey
	remove, add [][]policy.Value
}

// groupChanges sorts changes by group, so that the result does not depend on their order.
func groupChanges(remove, add []policy.Fact) []*groupChange {
	byKey := make(map[policy.GroupKey]*groupChange)
	at := func(fact policy.Fact) *groupChange {
		key := fact.Group()
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
	slices.SortFunc(changes, func(a, b *groupChange) int { return a.key.Compare(&b.key) })
	return changes
}

// tupleOf returns the tuple by which a fact is in its group.
func tupleOf(fact policy.Fact) []policy.Value {
	if fact.Positioned {
		return append([]policy.Value{policy.Integer(fact.Offset)}, fact.Arguments...)
	}
	return fact.Arguments
}
