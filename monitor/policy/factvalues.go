// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
)

// valueID stands for a value of a [FactIndex]: each value is stored once, and tuples are lists
// of numbers. A small integer stands for itself, so that the offsets of a log take no memory.
type valueID uint32

const inlineInteger valueID = 1 << 31 // and the integer below it

// valueUse is what the index knows of a value: its number, and the groups that have it.
type valueUse struct {
	id     valueID
	groups numbers
}

func (u valueUse) shared() valueUse { return valueUse{u.id, u.groups.shared()} }

var hashSeed = maphash.MakeSeed()

func (v Value) hash() uint64 {
	if v.kind == StringValue {
		return maphash.String(hashSeed, v.text)
	}
	high, low := bits.Mul64(uint64(v.number)^uint64(v.kind)<<56, 0x9e3779b97f4a7c15) //nolint:gosec // only its bits count
	return high ^ low
}

// isInline reports whether the value's number is the value itself.
func (v Value) isInline() bool {
	return v.kind == IntegerValue && v.number >= 0 && v.number < int64(inlineInteger)
}

// value returns the value with a number.
func (x *FactIndex) value(id valueID) Value {
	if id&inlineInteger != 0 {
		return Integer(int64(id &^ inlineInteger))
	}
	return *x.values.at(uint32(id))
}

// compare orders a stored value and another one as [Value.Compare] does.
func (x *FactIndex) compare(id valueID, other *Value) int {
	if id&inlineInteger != 0 {
		return Integer(int64(id &^ inlineInteger)).Compare(*other)
	}
	v := x.values.at(uint32(id))
	switch {
	case v.kind != StringValue || other.kind != StringValue:
		return v.Compare(*other)
	case v.text == other.text:
		return 0
	}
	return strings.Compare(v.text, other.text)
}

// idOf returns the number of a value; ok is false if no fact has it.
func (x *FactIndex) idOf(value Value) (id valueID, ok bool) {
	if value.isInline() {
		return inlineInteger | valueID(value.number), true //nolint:gosec // isInline
	}
	use := x.byValue.get(value.hash(), value)
	if use == nil {
		return 0, false
	}
	return use.id, true
}

// intern returns the number of a value, and gives it one if it has none. The caller must
// store it in a group.
func (b *FactBuilder) intern(value Value) valueID {
	x := &b.index
	if id, ok := x.idOf(value); ok {
		return id
	}
	value.text = strings.Clone(value.text) // it may be part of a large text
	id := valueID(x.values.add(b.edit, value))
	x.byValue.put(b.edit, value.hash(), value).id = id
	return id
}

// post records that a group has a value.
func (b *FactBuilder) post(id valueID, group uint32) {
	value := b.index.value(id)
	use := b.index.byValue.put(b.edit, value.hash(), value)
	use.id, use.groups = id, use.groups.with(group)
}

// unpost records that a group no longer has a value. A value that no group has is forgotten.
func (b *FactBuilder) unpost(id valueID, group uint32) {
	value := b.index.value(id)
	use := b.index.byValue.put(b.edit, value.hash(), value)
	if use.groups = use.groups.without(group); len(use.groups) > 0 {
		return
	}
	b.index.byValue.remove(b.edit, value.hash(), value)
	if id&inlineInteger == 0 {
		b.index.values.drop(b.edit, uint32(id))
	}
}

// unpost is a value that a group may no longer have.
type unpost struct {
	id    valueID
	group uint32
}

// unpostAll forgets the values that groups no longer have.
func (b *FactBuilder) unpostAll() {
	slices.SortFunc(b.unposts, func(u, v unpost) int {
		return cmp.Or(cmp.Compare(u.id, v.id), cmp.Compare(u.group, v.group))
	})
	for _, u := range slices.Compact(b.unposts) {
		if g := *b.index.groups.at(u.group); g == nil || !g.containsAnywhere(&b.index, u.id) {
			b.unpost(u.id, u.group)
		}
	}
	b.unposts = b.unposts[:0]
}

// containsAnywhere reports whether the group is found by a value, as posts says.
func (g *factGroup) containsAnywhere(x *FactIndex, id valueID) bool {
	for at := range g.rows.width {
		isOffset := g.key.Positioned && at == 0 && id&inlineInteger != 0
		if !isOffset && g.contains(x, at, id) {
			return true
		}
	}
	return false
}

// posts returns the values of a row by which its group is found. An offset is only kept.
func (k *GroupKey) posts(row []valueID) []valueID {
	end := k.first() + int(k.Arity)
	if k.Positioned && row[0]&inlineInteger != 0 {
		return row[1:end]
	}
	return row[:end]
}

// appendRow appends the row of a fact, whose values it stores.
func (b *FactBuilder) appendRow(row []valueID, fact *Fact) []valueID {
	if fact.Positioned {
		row = append(row, b.intern(Integer(fact.Offset)))
	}
	for _, argument := range fact.Arguments {
		row = append(row, b.intern(argument))
	}
	if !fact.Positioned && len(fact.Arguments) == 0 {
		row = append(row, b.intern(padding))
	}
	return row
}

// knownRow returns the row of a fact; ok is false if no fact has one of its values.
func (x *FactIndex) knownRow(fact *Fact) (row []valueID, ok bool) {
	row = make([]valueID, 0, len(fact.Arguments)+1)
	add := func(value Value) {
		if id, known := x.idOf(value); known {
			row = append(row, id)
		}
	}
	if fact.Positioned {
		add(Integer(fact.Offset))
	}
	for _, argument := range fact.Arguments {
		add(argument)
	}
	key := fact.Group()
	if len(row) == key.first()+int(key.Arity) {
		ok = true
	}
	if key.width() > len(row) {
		add(padding)
	}
	return row, ok
}
