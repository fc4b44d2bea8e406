// SPDX-License-Identifier: BSD-2-Clause

package policy

// scan walks through the rows of a group that a pattern selects.
type scan struct {
	x       *FactIndex
	pattern *Pattern
	key     *GroupKey
	rows    *rows
	at, end rowPlace
	rest    int // places in a row that are to be compared
	places  [MaxArguments + 1]uint8
	wanted  [MaxArguments + 1]valueID
	stopped bool // because no more rows may be looked at
}

// padding is the value of rows of relations without arguments.
var padding = Integer(0)

// at returns what the pattern wants at a place of a row, a Wildcard for anything.
func (p *Pattern) at(key *GroupKey, place int) *Value {
	switch {
	case key.Positioned && place == 0:
		return &p.Offset
	case place-key.first() < len(p.Arguments):
		return &p.Arguments[place-key.first()]
	}
	return &padding
}

// scan prepares a walk by the index that leaves the fewest rows.
func (x *FactIndex) scan(g *factGroup, pattern *Pattern) scan {
	s := scan{x: x, pattern: pattern, key: &g.key, rows: &g.rows}
	width, bound := g.rows.width, 0
	for bound < width && pattern.at(s.key, bound).kind != Wildcard {
		bound++
	}
	s.at, s.end = s.span(&g.rows, bound)
	for i := bound + 1; i < width; i++ {
		want := pattern.at(s.key, i)
		if want.kind == Wildcard {
			continue
		}
		id, known := x.idOf(*want)
		if !known {
			s.end = s.at
			return s
		}
		s.places[s.rest], s.wanted[s.rest] = uint8(i), id
		s.rest++
	}
	if g.columns != nil && s.rest > 0 {
		s.choose(g)
	}
	return s
}

// choose walks by a column instead if that leaves fewer rows.
func (s *scan) choose(g *factGroup) {
	fewest := estimate(s.at, s.end)
	for i := range s.rest {
		if fewest <= columnThreshold {
			return
		}
		by := int(s.places[i])
		column := g.column(s.x, by)
		bound := 0
		for bound < by && s.pattern.at(s.key, bound).kind != Wildcard {
			bound++
		}
		at, end := s.spanOf(column, by, s.wanted[i], bound)
		if count := estimate(at, end); count < fewest {
			fewest, s.rows, s.at, s.end = count, column, at, end
		}
	}
}

// span returns the rows in the order of factGroup.rows whose first values are the pattern's.
func (s *scan) span(in *rows, bound int) (from, to rowPlace) {
	if bound == 0 {
		return rowPlace{}, in.end()
	}
	from = in.search(func(row []valueID) bool { return s.compare(row, bound) >= 0 })
	switch {
	case !from.before(in.end()) || s.compare(in.row(from), bound) != 0:
		return from, from
	case bound == in.width:
		return from, in.next(from)
	}
	return from, in.search(func(row []valueID) bool { return s.compare(row, bound) > 0 })
}

// spanOf does the same for a column, whose rows also have the value at its place.
func (s *scan) spanOf(column *rows, by int, id valueID, bound int) (from, to rowPlace) {
	order := func(row []valueID) int {
		switch {
		case row[by] < id:
			return -1
		case row[by] > id:
			return 1
		}
		return s.compare(row, bound)
	}
	from = column.search(func(row []valueID) bool { return order(row) >= 0 })
	return from, column.search(func(row []valueID) bool { return order(row) > 0 })
}

// compare compares the first values of a row with the pattern's.
func (s *scan) compare(row []valueID, bound int) int {
	for i := range bound {
		if order := s.x.compare(row[i], s.pattern.at(s.key, i)); order != 0 {
			return order
		}
	}
	return 0
}

// next returns the next row, nil at the end. The row must not be changed.
func (s *scan) next() []valueID {
	for s.at.before(s.end) {
		if !s.pattern.Look() {
			s.stopped = true
			return nil
		}
		row := s.rows.row(s.at)
		s.at = s.rows.next(s.at)
		if s.matches(row) {
			return row
		}
	}
	return nil
}

func (s *scan) matches(row []valueID) bool {
	for i := range s.rest {
		if row[s.places[i]] != s.wanted[i] {
			return false
		}
	}
	return true
}
