// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"maps"
	"slices"
)

// symbols numbers values, so that a fact's columns are 4 bytes each. A number is
// reused once nothing refers to it: a monitor that runs for months and sees
// users come and go must not grow.
type symbols struct {
	values     []Value
	references []uint32
	numbers    map[Value]uint32
	free       []uint32
}

func (s *symbols) number(value Value) (uint32, bool) {
	number, known := s.numbers[value]
	return number, known
}

func (s *symbols) acquire(value Value) uint32 {
	if number, known := s.numbers[value]; known {
		s.references[number]++
		return number
	}
	var number uint32
	if last := len(s.free) - 1; last >= 0 {
		number, s.free = s.free[last], s.free[:last]
		s.values[number], s.references[number] = value, 1
	} else {
		number = uint32(len(s.values))
		s.values = append(s.values, value)
		s.references = append(s.references, 1)
	}
	s.numbers[value] = number
	return number
}

func (s *symbols) release(number uint32) {
	s.references[number]--
	if s.references[number] == 0 {
		delete(s.numbers, s.values[number])
		s.values[number] = Value{}
		s.free = append(s.free, number)
	}
}

// end terminates a chain.
const end = ^uint32(0)

// chain is the list of rows that have one symbol in one column.
type chain struct{ head, count uint32 }

// relation holds the tuples of one relation name and arity: rows of symbol
// numbers, a hash index over whole rows, and for every column a list of the rows
// with each symbol. Memory is 12 bytes per column and about 8 per row.
type relation struct {
	columns  int      // conduit, offset where positioned, arguments
	cells    []uint32 // row r, column c at r*columns+c
	next     []uint32 // row after r in the chain of column c, same place
	previous []uint32
	chains   []map[uint32]chain // by column
	buckets  []uint32           // row+1, 0 for empty; linear probing, a power of two
	live     int
	free     []uint32 // rows
}

func newRelation(columns int) *relation {
	r := &relation{columns: columns, buckets: make([]uint32, 8)}
	for range columns {
		r.chains = append(r.chains, make(map[uint32]chain))
	}
	return r
}

func (r *relation) clone() *relation {
	copied := *r
	copied.cells = slices.Clone(r.cells)
	copied.next = slices.Clone(r.next)
	copied.previous = slices.Clone(r.previous)
	copied.buckets = slices.Clone(r.buckets)
	copied.free = slices.Clone(r.free)
	copied.chains = nil
	for _, column := range r.chains {
		copied.chains = append(copied.chains, maps.Clone(column))
	}
	return &copied
}

func (r *relation) row(number uint32) []uint32 {
	return r.cells[int(number)*r.columns : (int(number)+1)*r.columns]
}

func hashRow(row []uint32) uint64 {
	hash := uint64(0x9e3779b97f4a7c15)
	for _, cell := range row {
		hash = (hash ^ uint64(cell)) * 0xff51afd7ed558ccd
		hash ^= hash >> 32
	}
	return hash
}

// bucket returns where row stands in the hash index, or the empty place where it
// would.
func (r *relation) bucket(row []uint32) (place int, found bool) {
	mask := len(r.buckets) - 1
	for place = int(hashRow(row)) & mask; ; place = (place + 1) & mask {
		entry := r.buckets[place]
		if entry == 0 {
			return place, false
		}
		if slices.Equal(r.row(entry-1), row) {
			return place, true
		}
	}
}

func (r *relation) insert(row []uint32) bool {
	place, found := r.bucket(row)
	if found {
		return false
	}
	if (r.live+1)*4 > len(r.buckets)*3 {
		r.grow()
		place, _ = r.bucket(row)
	}
	var number uint32
	if last := len(r.free) - 1; last >= 0 {
		number, r.free = r.free[last], r.free[:last]
		copy(r.row(number), row)
	} else {
		number = uint32(len(r.cells) / r.columns)
		r.cells = append(r.cells, row...)
		r.next = append(r.next, row...)
		r.previous = append(r.previous, row...)
	}
	r.buckets[place] = number + 1
	r.live++
	for column, symbol := range row {
		r.link(number, column, symbol)
	}
	return true
}

func (r *relation) link(number uint32, column int, symbol uint32) {
	list, exists := r.chains[column][symbol]
	if !exists {
		list.head = end
	}
	cell := int(number)*r.columns + column
	r.next[cell], r.previous[cell] = list.head, end
	if list.head != end {
		r.previous[int(list.head)*r.columns+column] = number
	}
	r.chains[column][symbol] = chain{number, list.count + 1}
}

func (r *relation) unlink(number uint32, column int, symbol uint32) {
	list := r.chains[column][symbol]
	cell := int(number)*r.columns + column
	next, previous := r.next[cell], r.previous[cell]
	if next != end {
		r.previous[int(next)*r.columns+column] = previous
	}
	if previous != end {
		r.next[int(previous)*r.columns+column] = next
	} else {
		list.head = next
	}
	list.count--
	if list.count == 0 {
		delete(r.chains[column], symbol)
	} else {
		r.chains[column][symbol] = list
	}
}

func (r *relation) grow() {
	old := r.buckets
	r.buckets = make([]uint32, 2*len(old))
	for _, entry := range old {
		if entry != 0 {
			place, _ := r.bucket(r.row(entry - 1))
			r.buckets[place] = entry
		}
	}
}

func (r *relation) delete(row []uint32) bool {
	place, found := r.bucket(row)
	if !found {
		return false
	}
	number := r.buckets[place] - 1
	for column, symbol := range row {
		r.unlink(number, column, symbol)
	}
	r.vacate(place)
	r.free = append(r.free, number)
	r.live--
	return true
}

// vacate empties a bucket and moves later entries of the same probe run up, so
// that no tombstones are needed.
func (r *relation) vacate(place int) {
	mask := len(r.buckets) - 1
	for later := place; ; {
		later = (later + 1) & mask
		entry := r.buckets[later]
		if entry == 0 {
			break
		}
		home := int(hashRow(r.row(entry-1))) & mask
		if (later-home)&mask >= (later-place)&mask {
			r.buckets[place] = entry
			place = later
		}
	}
	r.buckets[place] = 0
}

// unbound in a query row matches every symbol. It is never a symbol's number:
// that would take 2^32-1 values.
const unbound = ^uint32(0)

// matches calls visit with the rows that agree with query in every bound column,
// in no particular order, until visit returns false. It walks the shortest list
// among the bound columns.
func (r *relation) matches(query []uint32, visit func(row uint32) bool) {
	shortest, length := -1, end
	complete := true
	for column, symbol := range query {
		if symbol == unbound {
			complete = false
			continue
		}
		list := r.chains[column][symbol]
		if list.count == 0 {
			return
		}
		if list.count < length {
			shortest, length = column, list.count
		}
	}
	switch {
	case complete:
		if place, found := r.bucket(query); found {
			visit(r.buckets[place] - 1)
		}
	case shortest < 0:
		for _, entry := range r.buckets {
			if entry != 0 && !visit(entry-1) {
				return
			}
		}
	default:
		r.walk(query, shortest, visit)
	}
}

func (r *relation) walk(query []uint32, column int, visit func(row uint32) bool) {
	for number := r.chains[column][query[column]].head; number != end; {
		row := r.row(number)
		agrees := true
		for other, symbol := range query {
			if symbol != unbound && row[other] != symbol {
				agrees = false
				break
			}
		}
		if agrees && !visit(number) {
			return
		}
		number = r.next[int(number)*r.columns+column]
	}
}
