// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"maps"
	"slices"

	"shai.dev/monitor/policy"
)

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

// builder makes the next index from one: it copies the shards that it touches.
type builder struct {
	next       *factIndex
	ownGroups  [factShards]bool
	ownLists   [factShards]bool
	ownMention map[policy.Value]bool // lists that are not shared with the previous index
	added      []policy.Fact
	removed    []policy.Fact
}

// changed returns the index after the changes, and the facts that were really added and
// removed. A tuple that was bare and gets an offset counts as both. The receiver does not
// change. Changes are sorted as groupChanges does.
func (x *factIndex) changed(changes []*groupChange) (next *factIndex, added, removed []policy.Fact) {
	copied := *x
	b := &builder{next: &copied, ownMention: make(map[policy.Value]bool)}
	for i := 0; i < len(changes); i++ {
		plain, positioned := changes[i].key, changes[i].key
		plain.positioned, positioned.positioned = false, true
		bare, at := changes[i], (*groupChange)(nil)
		if bare.key.positioned {
			bare, at = nil, changes[i]
		} else if i+1 < len(changes) && changes[i+1].key == positioned {
			i++
			at = changes[i]
		}
		if at == nil && b.next.group(positioned) == nil {
			b.apply(bare)
		} else {
			b.applyPositioned(plain, bare, at)
		}
	}
	return b.next, b.added, b.removed
}

// apply applies the change of a group without offsets.
func (b *builder) apply(change *groupChange) {
	added, removed := b.merge(change)
	for _, tuple := range added {
		b.added = append(b.added, change.key.fact(tuple))
	}
	for _, tuple := range removed {
		b.removed = append(b.removed, change.key.fact(tuple))
	}
}

// merge puts the next group in the place of one, and returns what was really added and
// removed, in order.
func (b *builder) merge(change *groupChange) (added, removed [][]policy.Value) {
	old := b.next.group(change.key)
	if old == nil {
		key := change.key
		old = newGroup(&key, 0, nil)
	}
	slices.SortFunc(change.add, compareTuples)
	slices.SortFunc(change.remove, compareTuples)
	merged, added, removed := merge(old, change)
	if len(added)+len(removed) == 0 {
		return nil, nil
	}
	next := newGroup(old.key, old.count+len(added)-len(removed), merged)
	b.store(next)
	if !change.key.positioned {
		b.next.size += len(added) - len(removed)
		b.mention(old, next, added, removed)
	}
	return added, removed
}

// merge walks through the group and the sorted changes in parallel. A tuple that is both
// removed and added stays.
func merge(old *group, change *groupChange) (values []policy.Value, added, removed [][]policy.Value) {
	add, remove := slices.CompactFunc(change.add, equalTuples), change.remove
	values = make([]policy.Value, 0, (old.count+len(add))*old.key.width())
	i := 0
	for i < old.count || len(add) > 0 {
		order := -1
		if i == old.count {
			order = 1
		} else if len(add) > 0 {
			order = compareTuples(old.tuple(i), add[0])
		}
		if order > 0 {
			added = append(added, add[0])
			values, add = append(values, add[0]...), add[1:]
			continue
		}
		tuple := old.tuple(i)
		i++
		for len(remove) > 0 && compareTuples(remove[0], tuple) < 0 {
			remove = remove[1:]
		}
		switch {
		case order == 0:
			add = add[1:]
			values = append(values, tuple...)
		case len(remove) > 0 && equalTuples(remove[0], tuple):
			removed = append(removed, tuple)
		default:
			values = append(values, tuple...)
		}
	}
	return values, added, removed
}

func equalTuples(a, b []policy.Value) bool { return slices.Equal(a, b) }

func (b *builder) store(g *group) {
	shard := groupShard(*g.key)
	if !b.ownGroups[shard] {
		b.ownGroups[shard] = true
		copied := make(map[groupKey]*group, len(b.next.groups[shard])+1)
		maps.Copy(copied, b.next.groups[shard])
		b.next.groups[shard] = copied
	}
	if g.count == 0 {
		delete(b.next.groups[shard], *g.key)
	} else {
		b.next.groups[shard][*g.key] = g
	}
}

// mention updates the reverse index for one group.
func (b *builder) mention(old, next *group, added, removed [][]policy.Value) {
	name := policy.String(next.key.conduit)
	if old.count == 0 {
		b.addMention(name, next.key)
	}
	for _, tuple := range added {
		for _, value := range tuple {
			b.addMention(value, next.key)
		}
	}
	for _, tuple := range removed {
		for _, value := range tuple {
			if !next.mentions(value) {
				b.dropMention(value, next.key)
			}
		}
	}
	if next.count == 0 {
		b.dropMention(name, next.key)
	}
}

func (g *group) mentions(value policy.Value) bool {
	if g.count > 0 && value == policy.String(g.key.conduit) {
		return true
	}
	pattern := make([]policy.Value, g.key.arity)
	for position := range pattern {
		clear(pattern)
		pattern[position] = value
		if !g.matches(new(policy.Pattern), pattern, func([]policy.Value) bool { return false }) {
			return true
		}
	}
	return false
}

// lists returns a value's list of mentions, in a shard that may be written.
func (b *builder) lists(value policy.Value) (map[policy.Value][]*groupKey, []*groupKey) {
	shard := valueShard(value)
	if !b.ownLists[shard] {
		b.ownLists[shard] = true
		copied := make(map[policy.Value][]*groupKey, len(b.next.mentions[shard])+1)
		maps.Copy(copied, b.next.mentions[shard])
		b.next.mentions[shard] = copied
	}
	return b.next.mentions[shard], b.next.mentions[shard][value]
}

func (b *builder) addMention(value policy.Value, key *groupKey) {
	shard, list := b.lists(value)
	at, found := slices.BinarySearchFunc(list, key, (*groupKey).compare)
	if found {
		return
	}
	if !b.ownMention[value] {
		b.ownMention[value] = true
		list = slices.Clone(list)
	}
	shard[value] = slices.Insert(list, at, key)
}

func (b *builder) dropMention(value policy.Value, key *groupKey) {
	shard, list := b.lists(value)
	at, found := slices.BinarySearchFunc(list, key, (*groupKey).compare)
	if !found {
		return
	}
	if !b.ownMention[value] {
		b.ownMention[value] = true
		list = slices.Clone(list)
	}
	if list = slices.Delete(list, at, at+1); len(list) == 0 {
		delete(shard, value)
	} else {
		shard[value] = list
	}
}
