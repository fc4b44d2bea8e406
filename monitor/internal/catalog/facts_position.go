// SPDX-License-Identifier: BSD-2-Clause

package catalog

import (
	"maps"
	"slices"

	"shai.dev/monitor/policy"
)

// Tuples with offsets, as the entries of a log. A tuple of a conduit is at one offset or
// several, or it is bare: it has none. The index has all of these tuples in one group, in
// which each is once, and those with offsets in another one as well. On disk each tuple is
// in one of the two groups only, so that nothing has to be kept in agreement there.

// standing is where a tuple stands in its conduit. The zero value is nowhere.
type standing struct {
	tuple   []policy.Value // without an offset
	bare    bool
	offsets map[int64]bool
}

func (s *standing) clone() *standing {
	return &standing{tuple: s.tuple, bare: s.bare, offsets: maps.Clone(s.offsets)}
}

func (s *standing) stands() bool { return s.bare || len(s.offsets) > 0 }

// remove removes a tuple from one offset. A tuple that loses its last one is gone.
func (s *standing) remove(offset int64) { delete(s.offsets, offset) }

// removeAll removes a tuple from wherever it is.
func (s *standing) removeAll() {
	s.bare = false
	clear(s.offsets)
}

// add adds a tuple without an offset, which one at an offset is already.
func (s *standing) add() { s.bare = len(s.offsets) == 0 }

// addAt adds a tuple at an offset.
func (s *standing) addAt(offset int64) {
	if s.offsets == nil {
		s.offsets = make(map[int64]bool)
	}
	s.bare, s.offsets[offset] = false, true
}

// standings collects the tuples that a change touches, by policy.NewTuple.
type standings struct {
	index      *factIndex
	plain      groupKey
	positioned groupKey
	before     map[policy.Tuple]*standing
	after      map[policy.Tuple]*standing
}

// of returns the standing of a tuple, to be changed.
func (s *standings) of(tuple []policy.Value) *standing {
	packed := policy.NewTuple(tuple...)
	if known := s.after[packed]; known != nil {
		return known
	}
	before := &standing{tuple: tuple}
	if s.index.Has(policy.Pattern{Conduit: s.plain.conduit, Relation: s.plain.relation, Arguments: tuple}) {
		s.index.Lookup(policy.Pattern{Conduit: s.plain.conduit, Relation: s.plain.relation, Arguments: tuple,
			Positioned: true}, func(fact policy.Fact) bool {
			before.addAt(fact.Offset)
			return true
		})
		before.add()
	}
	s.before[packed], s.after[packed] = before, before.clone()
	return s.after[packed]
}

// applyPositioned applies the changes of one relation of a conduit of which some tuples
// have offsets, or will have. Either change may be nil.
func (b *builder) applyPositioned(plain groupKey, bare, at *groupChange) {
	positioned := plain
	positioned.positioned = true
	s := &standings{index: b.next, plain: plain, positioned: positioned,
		before: make(map[policy.Tuple]*standing), after: make(map[policy.Tuple]*standing)}
	for _, change := range []*groupChange{bare, at} {
		if change != nil {
			for _, tuple := range change.remove {
				s.remove(change.key, tuple)
			}
		}
	}
	for _, change := range []*groupChange{bare, at} {
		if change != nil {
			for _, tuple := range change.add {
				s.add(change.key, tuple)
			}
		}
	}
	b.become(s)
}

func (s *standings) remove(key groupKey, tuple []policy.Value) {
	if key.positioned {
		s.of(tuple[1:]).remove(tuple[0].Number())
	} else {
		s.of(tuple).removeAll()
	}
}

func (s *standings) add(key groupKey, tuple []policy.Value) {
	if key.positioned {
		s.of(tuple[1:]).addAt(tuple[0].Number())
	} else {
		s.of(tuple).add()
	}
}

// become gives the index what the standings are afterwards.
func (b *builder) become(s *standings) {
	all := &groupChange{key: s.plain}
	at := &groupChange{key: s.positioned}
	for packed, after := range s.after {
		before := s.before[packed]
		if after.stands() {
			all.add = append(all.add, after.tuple)
		} else {
			all.remove = append(all.remove, after.tuple)
		}
		if before.bare && !after.bare {
			b.removed = append(b.removed, s.plain.fact(after.tuple))
		}
		if after.bare && !before.bare {
			b.added = append(b.added, s.plain.fact(after.tuple))
		}
		for offset := range before.offsets {
			if !after.offsets[offset] {
				at.remove = append(at.remove, withOffset(offset, after.tuple))
			}
		}
		for offset := range after.offsets {
			if !before.offsets[offset] {
				at.add = append(at.add, withOffset(offset, after.tuple))
			}
		}
	}
	b.merge(all)
	added, removed := b.merge(at)
	for _, tuple := range added {
		b.added = append(b.added, s.positioned.fact(tuple))
	}
	for _, tuple := range removed {
		b.removed = append(b.removed, s.positioned.fact(tuple))
	}
}

func withOffset(offset int64, tuple []policy.Value) []policy.Value {
	return slices.Insert(slices.Clone(tuple), 0, policy.Integer(offset))
}
