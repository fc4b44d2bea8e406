// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Tuples with offsets, as the entries of a log. A tuple of a conduit is at one offset or
// several, or it is bare: it has none. All of these tuples are in one group, in which each is
// once, and those with offsets are in another one as well.

// applyPositioned applies the changes of one relation of a conduit of which some tuples have
// offsets, or will have.
func (b *FactBuilder) applyPositioned(bare, at *change) {
	if len(bare.remove)+len(bare.add)+len(at.remove) == 0 {
		b.appendPositioned(bare.key, at)
		return
	}
	s := &standings{b: b, plain: bare.key, positioned: at.key, of: make(map[string]*standing)}
	for _, row := range bare.remove {
		now := s.standing(row)
		now.bare = false
		clear(now.offsets)
	}
	for _, row := range at.remove {
		delete(s.standing(at.key.bare(row)).offsets, row[0])
	}
	for _, row := range bare.add {
		now := s.standing(row)
		now.bare = len(now.offsets) == 0
	}
	for _, row := range at.add {
		now := s.standing(at.key.bare(row))
		now.bare, now.offsets[row[0]] = false, true
	}
	s.apply()
}

// appendPositioned is for tuples that are only added, with offsets, as a log's: it looks at no
// other tuple, unless one of them stands without an offset.
func (b *FactBuilder) appendPositioned(plain GroupKey, at *change) {
	all := &change{key: plain}
	var wereBare [][]valueID
	g, positioned := b.index.groupOf(plain), b.index.groupOf(at.key)
	for _, row := range at.add {
		tuple := at.key.bare(row)
		all.add = append(all.add, tuple)
		if g != nil && g.has(&b.index, tuple) && (positioned == nil || !b.isPositioned(&plain, tuple)) {
			wereBare = append(wereBare, tuple)
		}
	}
	b.merge(all)
	removed, added := b.merge(at)
	b.report(&at.key, removed, added)
	slices.SortFunc(wereBare, b.index.compareRows)
	b.report(&plain, slices.CompactFunc(wereBare, slices.Equal), nil)
}

func (b *FactBuilder) isPositioned(plain *GroupKey, tuple []valueID) bool {
	fact := b.index.fact(plain, tuple, nil)
	return b.index.isPositioned(&fact)
}

// bare returns a positioned row without its offset.
func (k *GroupKey) bare(row []valueID) []valueID {
	if k.Arity == 0 {
		return []valueID{inlineInteger} // the padding
	}
	return row[1:]
}

// at returns the positioned row of one without an offset.
func (k *GroupKey) at(offset valueID, bare []valueID) []valueID {
	return append([]valueID{offset}, bare[:k.Arity]...)
}

// standing is where a tuple is, before a change and after it.
type standing struct {
	row             []valueID // without an offset
	wasBare, bare   bool
	before, offsets map[valueID]bool
}

// standings are those of the tuples that a change touches.
type standings struct {
	b                 *FactBuilder
	plain, positioned GroupKey
	of                map[string]*standing
	order             []*standing
}

// standing returns the standing of a tuple, to be changed.
func (s *standings) standing(row []valueID) *standing {
	var key []byte
	for _, id := range row {
		key = binary.NativeEndian.AppendUint32(key, uint32(id))
	}
	if known := s.of[string(key)]; known != nil {
		return known
	}
	now := &standing{row: row, before: make(map[valueID]bool)}
	x := &s.b.index
	if g := x.groupOf(s.plain); g != nil && g.has(x, row) {
		if positioned := x.groupOf(s.positioned); positioned != nil {
			pattern := Pattern{Arguments: x.fact(&s.plain, row, nil).Arguments, Positioned: true}
			found := x.scan(positioned, &pattern)
			for at := found.next(); at != nil; at = found.next() {
				now.before[at[0]] = true
			}
		}
		now.wasBare = len(now.before) == 0
	}
	now.bare, now.offsets = now.wasBare, maps.Clone(now.before)
	s.of[string(key)] = now
	s.order = append(s.order, now)
	return now
}

// apply gives the index what the standings are afterwards.
func (s *standings) apply() {
	all, at := &change{key: s.plain}, &change{key: s.positioned}
	var removed, added [][]valueID
	for _, now := range s.order {
		if now.bare || len(now.offsets) > 0 {
			all.add = append(all.add, now.row)
		} else {
			all.remove = append(all.remove, now.row)
		}
		if now.wasBare && !now.bare {
			removed = append(removed, now.row)
		}
		if now.bare && !now.wasBare {
			added = append(added, now.row)
		}
		for offset := range now.before {
			if !now.offsets[offset] {
				at.remove = append(at.remove, s.positioned.at(offset, now.row))
			}
		}
		for offset := range now.offsets {
			if !now.before[offset] {
				at.add = append(at.add, s.positioned.at(offset, now.row))
			}
		}
	}
	s.b.merge(all)
	slices.SortFunc(removed, s.b.index.compareRows)
	slices.SortFunc(added, s.b.index.compareRows)
	s.b.report(&s.plain, removed, added)
	removed, added = s.b.merge(at)
	s.b.report(&s.positioned, removed, added)
}

// Last returns the fact of a relation of a conduit that has the highest offset; false if none has
// one.
func (x *FactIndex) Last(conduit, relation string, arguments int) (Fact, bool) {
	g := x.group(conduit, relation, arguments, true)
	if g == nil || g.count == 0 {
		return Fact{}, false
	}
	chunk := g.rows.chunks[len(g.rows.chunks)-1] // chunks are never empty, and rows begin with their offset
	return x.fact(&g.key, chunk[len(chunk)-g.rows.width:], nil), true
}
