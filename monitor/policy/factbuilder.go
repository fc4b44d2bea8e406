// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"maps"
	"slices"
	"strings"
)

// FactBuilder makes a [FactIndex] of many facts, which it does not keep twice: it takes them
// one by one. It is not safe for concurrent use.
type FactBuilder struct {
	edit  *edit
	index FactIndex

	key     GroupKey // of the pending rows
	pending []valueID

	found   outcome  // of the change that is being made
	quiet   bool     // found is not wanted
	unposts []unpost // for its end: until then, what it adds may have the values
}

// Add adds a fact. Facts of one conduit and relation should follow each other. Those that have
// offsets must come after those of the same relation that have none.
func (b *FactBuilder) Add(fact Fact) error {
	if err := fact.check(); err != nil {
		return err
	}
	b.begin()
	if key := fact.Group(); key != b.key {
		b.flush()
		b.key = key
	}
	b.pending = b.appendRow(b.pending, &fact)
	return nil
}

// Index returns the facts that were added. The builder is empty afterwards.
func (b *FactBuilder) Index() *FactIndex {
	b.flush()
	index := b.index
	*b = FactBuilder{}
	return &index
}

func (b *FactBuilder) begin() {
	if b.edit == nil {
		b.edit = new(edit)
	}
}

func (b *FactBuilder) flush() {
	if len(b.pending) == 0 {
		return
	}
	c := &change{key: b.key, add: slices.Collect(slices.Chunk(b.pending, b.key.width()))}
	b.pending = nil
	b.quiet = true
	b.apply(map[GroupKey]*change{c.key: c}, c.key)
	b.quiet = false
}

// Changed returns the index after the facts of remove are removed, and then those of add
// added, and which facts that really removed and added. A fact in both lists is present
// afterwards. Facts that cannot be ([ErrInvalidFact]) change nothing.
//
// A fact with an offset is one without, too. To remove one without an offset removes it from
// every offset; one that loses its last offset is gone. One without an offset that gets one
// counts as removed, and the one with the offset as added: [FactIndex.Changed] with removed and
// added exchanged thus makes the same set as before.
func (x *FactIndex) Changed(remove, add []Fact) (next *FactIndex, removed, added []Fact, err error) {
	b := FactBuilder{index: *x}
	removed, added, err = b.change(remove, add)
	if err != nil || len(removed)+len(added) == 0 {
		return x, nil, nil, err
	}
	return &b.index, removed, added, nil
}

// change is a change of the tuples of one key: rows to remove, then rows to add.
type change struct {
	key         GroupKey
	remove, add [][]valueID
}

// outcome is what a change really removed and added.
type outcome struct{ removed, added []Fact }

// change changes the builder's index.
func (b *FactBuilder) change(remove, add []Fact) (removed, added []Fact, err error) {
	for _, facts := range [][]Fact{remove, add} {
		for i := range facts {
			if err := facts[i].check(); err != nil {
				return nil, nil, err
			}
		}
	}
	b.begin()
	changes := make(map[GroupKey]*change)
	of := func(fact *Fact, positioned bool) *change {
		key := fact.Group()
		key.Positioned = positioned
		if changes[key] == nil {
			changes[key] = &change{key: key}
		}
		return changes[key]
	}
	for i := range remove {
		if row, known := b.index.knownRow(&remove[i]); known {
			c := of(&remove[i], remove[i].Positioned)
			c.remove = append(c.remove, row)
		}
	}
	for i := range add {
		c := of(&add[i], add[i].Positioned)
		c.add = append(c.add, b.appendRow(nil, &add[i]))
	}
	for _, key := range slices.SortedFunc(maps.Keys(changes), func(k, l GroupKey) int { return k.Compare(&l) }) {
		b.apply(changes, key)
	}
	b.unpostAll()
	found := b.found
	b.found = outcome{}
	return found.removed, found.added, nil
}

// apply applies the changes of one relation of a conduit: of its tuples without offsets, and
// of those with offsets.
func (b *FactBuilder) apply(changes map[GroupKey]*change, key GroupKey) {
	plain, positioned := key, key
	plain.Positioned, positioned.Positioned = false, true
	bare, at := changes[plain], changes[positioned]
	switch {
	case key.Positioned && bare != nil:
		return // done with those without offsets
	case at == nil && b.index.groupOf(positioned) == nil:
		removed, added := b.merge(bare)
		b.report(&bare.key, removed, added)
		return
	}
	if bare == nil {
		bare = &change{key: plain}
	}
	if at == nil {
		at = &change{key: positioned}
	}
	b.applyPositioned(bare, at)
}

// report records what was removed and added, before the numbers of values are used again.
func (b *FactBuilder) report(key *GroupKey, removed, added [][]valueID) {
	if b.quiet {
		return
	}
	for _, row := range removed {
		b.found.removed = append(b.found.removed, b.index.fact(key, row, nil))
	}
	for _, row := range added {
		b.found.added = append(b.found.added, b.index.fact(key, row, nil))
	}
}

// merge changes a group, and returns the rows that were really removed and added, sorted.
func (b *FactBuilder) merge(c *change) (removed, added [][]valueID) {
	x := &b.index
	slices.SortFunc(c.add, x.compareRows)
	slices.SortFunc(c.remove, x.compareRows)
	c.add, c.remove = slices.CompactFunc(c.add, slices.Equal), slices.CompactFunc(c.remove, slices.Equal)
	g := x.groupOf(c.key)
	if g == nil {
		if len(c.add) > 0 {
			b.insert(c)
		}
		return nil, b.counted(c, nil, c.add)
	}
	for _, row := range c.remove {
		if _, stays := slices.BinarySearchFunc(c.add, row, x.compareRows); !stays && g.has(x, row) {
			removed = append(removed, row)
		}
	}
	for _, row := range c.add {
		if !g.has(x, row) {
			added = append(added, row)
		}
	}
	if len(removed)+len(added) > 0 {
		b.replace(g, removed, added)
	}
	return removed, b.counted(c, removed, added)
}

// counted keeps the number of tuples, and returns what was added.
func (b *FactBuilder) counted(c *change, removed, added [][]valueID) [][]valueID {
	if !c.key.Positioned {
		b.index.size += len(added) - len(removed)
	}
	return added
}

// insert makes the first version of a group.
func (b *FactBuilder) insert(c *change) {
	key := c.key
	key.Conduit, key.Relation = strings.Clone(key.Conduit), strings.Clone(key.Relation)
	all := rows{width: key.width()}
	all.append(slices.Concat(c.add...), true)
	g := newFactGroup(key, 0, all)
	g.number = b.index.groups.add(b.edit, g)
	of := b.index.byConduit.put(b.edit, hashConduit(key.Conduit), key.Conduit)
	*of = of.with(g.number)
	b.posted(g, c.add)
}

// replace puts the next version of a group in its place.
func (b *FactBuilder) replace(g *factGroup, removed, added [][]valueID) {
	x := &b.index
	next := g.changed(x, removed, added)
	for _, row := range removed {
		for _, id := range g.key.posts(row) {
			b.unposts = append(b.unposts, unpost{id, g.number})
		}
	}
	if next.count > 0 {
		x.groups.set(b.edit, g.number, next)
		b.posted(next, added)
		return
	}
	x.groups.drop(b.edit, g.number)
	of := x.byConduit.put(b.edit, hashConduit(g.key.Conduit), g.key.Conduit)
	if *of = of.without(g.number); len(*of) == 0 {
		x.byConduit.remove(b.edit, hashConduit(g.key.Conduit), g.key.Conduit)
	}
}

// posted records the values of rows that were added to a group.
func (b *FactBuilder) posted(g *factGroup, added [][]valueID) {
	for _, row := range added {
		for _, id := range g.key.posts(row) {
			b.post(id, g.number)
		}
	}
}
