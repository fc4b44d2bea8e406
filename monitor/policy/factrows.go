// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"sort"
)

// maxRows is the most rows in one chunk: a change copies whole chunks.
const maxRows = 256

// rows is a sorted list of rows of equal width, in chunks that are never empty. It is
// immutable.
type rows struct {
	width  int
	chunks [][]valueID
}

// rowPlace is a row's place in rows.
type rowPlace struct{ chunk, row int }

func (p rowPlace) before(other rowPlace) bool {
	return p.chunk < other.chunk || p.chunk == other.chunk && p.row < other.row
}

func (r *rows) row(at rowPlace) []valueID {
	from := at.row * r.width
	return r.chunks[at.chunk][from : from+r.width : from+r.width]
}

func (r *rows) end() rowPlace { return rowPlace{len(r.chunks), 0} }

func (r *rows) next(at rowPlace) rowPlace {
	if at.row++; at.row*r.width >= len(r.chunks[at.chunk]) {
		return rowPlace{at.chunk + 1, 0}
	}
	return at
}

// count returns the number of rows.
func (r *rows) count() (count int) {
	for _, chunk := range r.chunks {
		count += len(chunk)
	}
	return count / r.width
}

// estimate returns about how many rows there are from one place to a later one.
func estimate(from, to rowPlace) int { return (to.chunk-from.chunk)*maxRows + to.row - from.row }

// search returns the place of the first row for which reached is true; it must be false for
// all rows before that one and true for all after it.
func (r *rows) search(reached func(row []valueID) bool) rowPlace {
	chunk := sort.Search(len(r.chunks), func(i int) bool { return reached(r.chunks[i][:r.width]) })
	if chunk == 0 {
		return rowPlace{}
	}
	chunk-- // its first row is not reached, the next chunk's is
	ids := r.chunks[chunk]
	row := sort.Search(len(ids)/r.width, func(i int) bool { return reached(ids[i*r.width : (i+1)*r.width]) })
	if row*r.width == len(ids) {
		return rowPlace{chunk + 1, 0}
	}
	return rowPlace{chunk, row}
}

// changed returns the rows without those of remove, which are there, and with those of add,
// which are not. Both are in the order of compare.
func (r *rows) changed(remove, add [][]valueID, compare func(a, b []valueID) int) rows {
	next := rows{width: r.width, chunks: make([][]valueID, 0, len(r.chunks)+1+len(add)/maxRows)}
	for i, chunk := range r.chunks {
		removeHere, addHere := len(remove), len(add)
		if i+1 < len(r.chunks) {
			limit := r.chunks[i+1][:r.width]
			before := func(row []valueID) bool { return compare(row, limit) < 0 }
			removeHere, addHere = leading(remove, before), leading(add, before)
		}
		if removeHere+addHere == 0 {
			next.chunks = append(next.chunks, chunk)
			continue
		}
		next.append(merged(chunk, r.width, remove[:removeHere], add[:addHere], compare), i+1 == len(r.chunks))
		remove, add = remove[removeHere:], add[addHere:]
	}
	if len(r.chunks) == 0 {
		next.append(slices.Concat(add...), true)
	}
	return next
}

// leading counts the rows at the beginning for which before is true.
func leading(list [][]valueID, before func(row []valueID) bool) int {
	if len(list) == 0 || !before(list[0]) {
		return 0
	}
	return sort.Search(len(list), func(i int) bool { return !before(list[i]) })
}

func merged(chunk []valueID, width int, remove, add [][]valueID, compare func(a, b []valueID) int) []valueID {
	out := make([]valueID, 0, len(chunk)+len(add)*width-len(remove)*width)
	for ; len(chunk) > 0; chunk = chunk[width:] {
		row := chunk[:width]
		for len(add) > 0 && compare(add[0], row) < 0 {
			out, add = append(out, add[0]...), add[1:]
		}
		if len(remove) > 0 && compare(remove[0], row) == 0 {
			remove = remove[1:]
			continue
		}
		out = append(out, row...)
	}
	return append(out, slices.Concat(add...)...)
}

// append appends rows in chunks of their own: full ones at the end, as a log fills them, and
// elsewhere such that more fit into each. Small neighbours become one.
func (r *rows) append(ids []valueID, atEnd bool) {
	most := maxRows * r.width
	last := len(r.chunks) - 1
	switch {
	case len(ids) == 0:
		return
	case len(ids) <= most && (last < 0 || len(r.chunks[last])+len(ids) > most/2):
		r.chunks = append(r.chunks, ids)
		return
	case len(ids) <= most:
		r.chunks[last] = slices.Concat(r.chunks[last], ids)
		return
	case !atEnd:
		parts := (len(ids) + most - 1) / most
		most = (len(ids)/r.width + parts - 1) / parts * r.width
	}
	for part := range slices.Chunk(ids, most) {
		r.chunks = append(r.chunks, slices.Clone(part))
	}
}
