// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// GroupKey identifies the tuples of one relation and arity in one conduit, or, of these, those
// with an offset.
type GroupKey struct {
	Conduit, Relation string
	Arity             uint8
	Positioned        bool
}

// Group returns the key of the tuples that a fact is one of.
func (f *Fact) Group() GroupKey {
	return GroupKey{f.Conduit, f.Relation, uint8(len(f.Arguments)), f.Positioned} //nolint:gosec // at most MaxArguments
}

// Compare orders keys by conduit, relation and arity. Those of tuples with offsets come last.
func (k *GroupKey) Compare(other *GroupKey) int {
	order := cmp.Or(strings.Compare(k.Conduit, other.Conduit), strings.Compare(k.Relation, other.Relation),
		cmp.Compare(k.Arity, other.Arity))
	switch {
	case order != 0 || k.Positioned == other.Positioned:
		return order
	case k.Positioned:
		return 1
	}
	return -1
}

// first is the place of the arguments in a row: a positioned one begins with its offset.
func (k *GroupKey) first() int {
	if k.Positioned {
		return 1
	}
	return 0
}

// width is the length of a row. A relation without arguments has rows with a number.
func (k *GroupKey) width() int { return max(int(k.Arity)+k.first(), 1) }

// factGroup holds the tuples of one key, each a row of value numbers. It is immutable, except
// that readers add columns.
type factGroup struct {
	key     GroupKey
	number  uint32
	count   int
	rows    rows     // by Value.Compare
	columns []column // per place in a row after the first; nil in small groups
}

// column finds rows by one value: it holds them by its number first, and then as in rows. It
// is built at its first use; later versions of the group inherit it.
type column struct {
	building sync.Mutex
	rows     atomic.Pointer[rows]
}

// columnThreshold is the number of rows from which an index is faster than a scan.
const columnThreshold = 64

func newFactGroup(key GroupKey, number uint32, rows rows) *factGroup {
	g := &factGroup{key: key, number: number, rows: rows, count: rows.count()}
	if g.count >= columnThreshold && rows.width > 1 {
		g.columns = make([]column, rows.width-1)
	}
	return g
}

// column returns the rows by the value at a place, which is not the first.
func (g *factGroup) column(x *FactIndex, at int) *rows {
	c := &g.columns[at-1]
	if built := c.rows.Load(); built != nil {
		return built
	}
	c.building.Lock()
	defer c.building.Unlock()
	if built := c.rows.Load(); built != nil {
		return built
	}
	all := make([][]valueID, 0, g.count)
	for i := (rowPlace{}); i.before(g.rows.end()); i = g.rows.next(i) {
		all = append(all, g.rows.row(i))
	}
	// They are in the order of rows already, which a stable sort keeps.
	slices.SortStableFunc(all, func(a, b []valueID) int { return cmp.Compare(a[at], b[at]) })
	built := rows{width: g.rows.width}
	built.append(slices.Concat(all...), true)
	c.rows.Store(&built)
	return &built
}

// compareRows orders rows as in factGroup.rows.
func (x *FactIndex) compareRows(a, b []valueID) int {
	for i, id := range a {
		if id == b[i] {
			continue
		}
		other := x.value(b[i])
		return x.compare(id, &other)
	}
	return 0
}

// columnOrder orders rows as in a column.
func (x *FactIndex) columnOrder(at int) func(a, b []valueID) int {
	return func(a, b []valueID) int {
		if order := cmp.Compare(a[at], b[at]); order != 0 {
			return order
		}
		return x.compareRows(a, b)
	}
}

// changed returns the group without the rows of remove, which are there, and with those of
// add, which are not. Both are sorted.
func (g *factGroup) changed(x *FactIndex, remove, add [][]valueID) *factGroup {
	next := newFactGroup(g.key, g.number, g.rows.changed(remove, add, x.compareRows))
	for i := range min(len(g.columns), len(next.columns)) {
		built := g.columns[i].rows.Load()
		if built == nil {
			continue
		}
		order := x.columnOrder(i + 1)
		changed := built.changed(slices.SortedFunc(slices.Values(remove), order),
			slices.SortedFunc(slices.Values(add), order), order)
		next.columns[i].rows.Store(&changed)
	}
	return next
}

// has reports whether a row is there.
func (g *factGroup) has(x *FactIndex, row []valueID) bool {
	at := g.rows.search(func(other []valueID) bool { return x.compareRows(other, row) >= 0 })
	return at.before(g.rows.end()) && slices.Equal(g.rows.row(at), row)
}

// contains reports whether a value is at a place of some row.
func (g *factGroup) contains(x *FactIndex, at int, id valueID) bool {
	if at == 0 {
		value := x.value(id)
		from := g.rows.search(func(row []valueID) bool { return x.compare(row[0], &value) >= 0 })
		return from.before(g.rows.end()) && g.rows.row(from)[0] == id
	}
	if g.columns != nil {
		column := g.column(x, at)
		from := column.search(func(row []valueID) bool { return row[at] >= id })
		return from.before(column.end()) && column.row(from)[at] == id
	}
	for i := (rowPlace{}); i.before(g.rows.end()); i = g.rows.next(i) {
		if g.rows.row(i)[at] == id {
			return true
		}
	}
	return false
}
