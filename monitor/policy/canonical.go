// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"slices"
)

// Two conjunctions that differ only in the order of their literals and in their variables'
// names have to get one form. Which order is canonical is the problem of labelling a
// graph: variables get colours from where they occur (B. Weisfeiler and A. Leman, 1968),
// and where several variables keep one colour, each of them is tried as the first, unless
// a symmetry shows that this makes no difference (B. McKay, Practical graph isomorphism,
// 1981).

// maxLabelling limits the literals that are looked at to label one clause. A clause that
// needs more gets a form that depends on its spelling: equal policies may then have
// different identities, but never different policies the same one.
const maxLabelling = 20_000

// checkCost is the cost of writing a literal, beside that of looking at it.
const checkCost = 8

// canonicalOrder returns the literals, also those inside an each, in an order that does
// not depend on their order in body or on the variables' names.
func canonicalOrder(body []literal) []literal {
	dense := make(map[Value]int64) // variables that still occur, from 0
	for i := range body {
		body[i].allTerms(func(term Value) {
			if _, known := dense[term]; !known && term.kind == kindVariable {
				dense[term] = int64(len(dense))
			}
		})
	}
	c := &labelling{body: slices.Clone(body), work: maxLabelling}
	for i := range c.body {
		c.body[i] = c.body[i].replace(func(term Value) Value {
			if term.kind == kindVariable {
				term.number = dense[term]
			}
			return term
		})
		c.shapes = append(c.shapes, shapeOf(&c.body[i]))
	}
	c.plain = written(c.body, func(number int64) int64 { return number })
	c.search(make([]uint64, len(dense)), nil)
	ordered, _ := sorted(body, func(number int64) int64 {
		return int64(c.best[dense[Value{kind: kindVariable, number: number}]])
	})
	return ordered
}

// labelling is the search for the labels that give the least form.
type labelling struct {
	body       []literal
	shapes     []shape
	plain      []byte // the form with the variables' own numbers
	work       int
	best       labels
	form       []byte // of best
	path       []int  // the choices that lead to best
	symmetries [][]int
}

// labels are the new numbers of variables.
type labels []int

func (l labels) rename() func(int64) int64 {
	return func(number int64) int64 { return int64(l[number]) }
}

// search labels the variables, given colours and the variables that were chosen to get
// them. It returns how many of these choices need no alternatives any more.
func (c *labelling) search(colours []uint64, chosen []int) int {
	c.refine(colours)
	cell := smallestCell(colours)
	if cell == nil {
		return c.reached(colours, chosen)
	}
	var tried []int
	for i, variable := range cell {
		if i > 0 && (c.work <= 0 || c.symmetric(tried, variable, chosen) || c.swaps(colours, tried[0], variable)) {
			continue
		}
		tried = append(tried, variable)
		back := c.search(distinguished(colours, variable), append(slices.Clone(chosen), variable))
		if back < len(chosen) {
			return back
		}
	}
	return len(chosen)
}

// distinguished gives one variable a colour of its own.
func distinguished(colours []uint64, variable int) []uint64 {
	colours = slices.Clone(colours)
	colours[variable] = mixed(colours[variable], 1)
	return colours
}

// smallestCell returns the variables of a colour that several have, nil if all colours
// differ.
func smallestCell(colours []uint64) []int {
	cells := make(map[uint64][]int)
	for variable, colour := range colours {
		cells[colour] = append(cells[colour], variable)
	}
	var smallest []int
	for colour, cell := range cells {
		if len(cell) > 1 && (smallest == nil || len(cell) < len(smallest) ||
			len(cell) == len(smallest) && colour < colours[smallest[0]]) {
			smallest = cell
		}
	}
	return smallest
}

// reached compares a labelling with the best one. If both give the same form, they differ
// by a symmetry, and the alternatives since their paths parted lead to nothing new.
func (c *labelling) reached(colours []uint64, chosen []int) int {
	order := make([]int, len(colours))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(colours[a], colours[b]) })
	found := make(labels, len(colours))
	for label, variable := range order {
		found[variable] = label
	}
	form := written(c.body, found.rename())
	switch comparison := bytes.Compare(form, c.form); {
	case c.best == nil || comparison < 0:
		c.best, c.form, c.path = found, form, slices.Clone(chosen)
	case comparison == 0:
		symmetry := make([]int, len(order))
		for variable, label := range c.best {
			symmetry[variable] = order[label]
		}
		c.symmetries = append(c.symmetries, symmetry)
		for i := range chosen {
			if i >= len(c.path) || chosen[i] != c.path[i] {
				return i
			}
		}
	}
	return len(chosen)
}

// symmetric reports whether known symmetries that keep what was chosen turn one of the
// variables that were tried into this one.
func (c *labelling) symmetric(tried []int, variable int, chosen []int) bool {
	reachable := slices.Clone(tried)
	for i := 0; i < len(reachable); i++ {
		for _, symmetry := range c.symmetries {
			if slices.ContainsFunc(chosen, func(v int) bool { return symmetry[v] != v }) {
				continue
			}
			if next := symmetry[reachable[i]]; !slices.Contains(reachable, next) {
				reachable = append(reachable, next)
			}
		}
	}
	return slices.Contains(reachable, variable)
}

// swaps reports whether two variables, each with those whose colours follow from its own,
// can be exchanged for each other: so it is with equal parts of a conjunction that have
// nothing else in common.
func (c *labelling) swaps(colours []uint64, first, second int) bool {
	one, other := distinguished(colours, first), distinguished(colours, second)
	c.refine(one)
	c.refine(other)
	exchange := make(labels, len(colours))
	for variable := range exchange {
		exchange[variable] = variable
	}
	for variable, colour := range one {
		partner := slices.Index(other, colour)
		if colour == other[variable] || partner < 0 || occurrencesOf(colour, one) > 1 || exchange[variable] == partner {
			continue
		}
		if exchange[variable] != variable || exchange[partner] != partner {
			return false
		}
		exchange[variable], exchange[partner] = partner, variable
	}
	c.work -= checkCost * len(c.body)
	return exchange[first] == second && bytes.Equal(written(c.body, exchange.rename()), c.plain)
}

func occurrencesOf(colour uint64, colours []uint64) int {
	count := 0
	for _, other := range colours {
		if other == colour {
			count++
		}
	}
	return count
}

// refine makes colours differ for variables that occur differently, until this changes
// nothing more.
func (c *labelling) refine(colours []uint64) {
	occurrences := make([]uint64, len(colours))
	for distinct := 0; ; {
		seen := make(map[uint64]struct{}, len(colours))
		for _, colour := range colours {
			seen[colour] = struct{}{}
		}
		if len(seen) == distinct || len(seen) == len(colours) {
			return
		}
		distinct = len(seen)
		clear(occurrences)
		for i := range c.shapes {
			c.shapes[i].occur(0, colours, occurrences)
		}
		c.work -= len(c.shapes)
		for variable := range colours {
			colours[variable] = mixed(colours[variable], occurrences[variable])
		}
	}
}

// shape is a literal for the colouring of its variables.
type shape struct {
	bare      uint64  // what it is, apart from which variables it has and what is inside it
	variables []int64 // in the order of its terms
	inside    []shape // of an each
}

func shapeOf(l *literal) shape {
	var s shape
	bare := *l
	if l.content != nil {
		content := *l.content
		for i := range content.condition {
			s.inside = append(s.inside, shapeOf(&content.condition[i]))
		}
		content.condition, bare.content = nil, &content
	}
	hash := fnv.New64a()
	hash.Write(bare.appendTo(nil, func(number int64) int64 {
		s.variables = append(s.variables, number)
		return 0
	}))
	s.bare = hash.Sum64()
	return s
}

// colour identifies a literal whose variables are known by their colours only.
func (s *shape) colour(colours []uint64) uint64 {
	colour := s.bare
	for _, variable := range s.variables {
		colour = mixed(colour, colours[variable])
	}
	var inside uint64 // a sum, since their order does not count
	for i := range s.inside {
		inside += mixed(s.inside[i].colour(colours), 2)
	}
	return mixed(colour, inside)
}

// occur adds to each variable's occurrences those in a literal, with what encloses it.
func (s *shape) occur(enclosing uint64, colours, occurrences []uint64) {
	place := mixed(enclosing, s.colour(colours))
	for i, variable := range s.variables {
		occurrences[variable] += mixed(place, uint64(i))
	}
	for i := range s.inside {
		s.inside[i].occur(mixed(place, 3), colours, occurrences)
	}
}

// mixed combines two colours to one (the finalizer of splitmix64).
func mixed(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// sorted returns the literals, and those inside an each, in the order of their forms.
func sorted(body []literal, rename func(int64) int64) (ordered []literal, forms [][]byte) {
	type formed struct {
		literal literal
		form    []byte
	}
	all := make([]formed, len(body))
	for i, l := range body {
		if l.content != nil && len(l.content.condition) > 0 {
			content := *l.content
			content.condition, _ = sorted(content.condition, rename)
			l.content = &content
		}
		all[i] = formed{l, l.appendTo(nil, rename)}
	}
	slices.SortStableFunc(all, func(a, b formed) int { return bytes.Compare(a.form, b.form) })
	for _, each := range all {
		ordered, forms = append(ordered, each.literal), append(forms, each.form)
	}
	return ordered, forms
}

// written returns the form of a conjunction in the order of its literals' forms.
func written(body []literal, rename func(int64) int64) []byte {
	_, forms := sorted(body, rename)
	return bytes.Join(forms, nil)
}
