// SPDX-License-Identifier: BSD-2-Clause

package catalog

import "sync"

const pageSize = 4096

// conduitTable holds the class of each conduit. It is immutable: a change copies the
// pages that it touches.
type conduitTable struct {
	last  uint32 // highest number
	pages []*[pageSize]uint32

	reverse sync.Once
	byClass map[uint32][]uint32
}

func (t *conduitTable) class(id uint32) uint32 {
	if id == 0 || id > t.last {
		return 0
	}
	return t.pages[id/pageSize][id%pageSize]
}

// members is computed once for each version of the table, at its first use.
func (t *conduitTable) members(class uint32) []uint32 {
	t.reverse.Do(func() {
		t.byClass = make(map[uint32][]uint32)
		for id := uint32(1); id <= t.last; id++ {
			if c := t.class(id); c != 0 {
				t.byClass[c] = append(t.byClass[c], id)
			}
		}
	})
	return t.byClass[class]
}

// with returns the table after some conduits got another class. Ids above last extend it.
func (t *conduitTable) with(moves []Move) *conduitTable {
	next := &conduitTable{last: t.last, pages: append([]*[pageSize]uint32(nil), t.pages...)}
	own := make(map[uint32]bool)
	for _, move := range moves {
		page := move.ID / pageSize
		for int(page) >= len(next.pages) {
			own[uint32(len(next.pages))] = true //nolint:gosec // bounded by the numbers of conduits
			next.pages = append(next.pages, new([pageSize]uint32))
		}
		if !own[page] {
			own[page] = true
			copied := *next.pages[page]
			next.pages[page] = &copied
		}
		next.pages[page][move.ID%pageSize] = move.To
		next.last = max(next.last, move.ID)
	}
	return next
}

// another returns a member of the class, 0 if there is none.
func (t *conduitTable) another(class uint32) uint32 {
	for p, page := range t.pages {
		for i, c := range page {
			if c == class {
				return uint32(p*pageSize + i)
			}
		}
	}
	return 0
}
