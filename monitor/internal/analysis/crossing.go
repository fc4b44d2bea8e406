// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
)

// crossing is a group of conduits that are in one class before and in one after; 0 is no
// class.
type crossing struct {
	from, to uint32
	count    uint64
	example  uint32 // conduit number; 0 for a place
	place    string // path of a directory or similar, whose files do not exist yet
	chosen   string // the class after it, as text, if only a choice brings the conduits there
}

// name returns an example of the conduits.
func (c *Comparison) name(one *crossing) string {
	if one.example == 0 {
		return one.place
	}
	name, _ := c.before.Name(one.example)
	return name
}

// moved makes the crossings of conduits that change their class, and counts how many
// leave each class.
func (c *Comparison) moved(moves []catalog.Move) (left map[uint32]uint64, gone map[uint32]bool) {
	left, gone = map[uint32]uint64{}, map[uint32]bool{}
	at := map[[2]uint32]int{}
	for _, move := range moves {
		left[move.From]++
		gone[move.ID] = true
		key := [2]uint32{move.From, move.To}
		i, known := at[key]
		if !known {
			i = len(c.crossings)
			at[key] = i
			c.crossings = append(c.crossings, crossing{from: move.From, to: move.To, example: move.ID})
		}
		c.crossings[i].count++
	}
	return left, gone
}

// stayed makes the crossings of conduits that stay in their class.
func (c *Comparison) stayed(left map[uint32]uint64, gone map[uint32]bool) {
	for class := uint32(1); class <= c.before.Classes(); class++ {
		info := c.before.Class(class)
		count := uint64(info.Members) - left[class]
		if count == 0 {
			continue
		}
		example := info.Representative
		if gone[example] {
			for _, id := range c.before.Members(class) {
				if !gone[id] {
					example = id
					break
				}
			}
		}
		c.crossings = append(c.crossings, crossing{from: class, to: class, count: count, example: example})
	}
}

// places makes a crossing for each path beneath which files may be made later.
func (c *Comparison) places() {
	classes := map[string]*crossing{}
	for i, state := range []*catalog.State{c.before, c.after} {
		for _, place := range state.Places() {
			if classes[place.Path] == nil {
				classes[place.Path] = &crossing{count: 1, place: place.Path}
			}
			class := place.Class
			if state.Class(class).Members > 0 {
				class = 0 // its conduits are counted
			}
			if i == 0 {
				classes[place.Path].from = class
			} else {
				classes[place.Path].to = class
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(classes)) {
		c.crossings = append(c.crossings, *classes[path])
	}
}
