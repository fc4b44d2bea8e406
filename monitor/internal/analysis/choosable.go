// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"encoding/binary"
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Chosen is one pipeline as if one choice had been made for each conduit that has it.
type Chosen struct {
	Change *catalog.Change // to it, from the state in force
	Open   *Result         // accesses that are not denied
}

// Choosing is one pipeline on both sides of a change of bundle, without choices and with each one of the
// side. Before is nil if the pipeline does not exist there.
type Choosing struct {
	Before, After     *Side
	BeforeBy, AfterBy []Chosen
}

// choosable is a group of conduits that are in the same class as each other in each of these states; 0 is
// no class.
type choosable struct {
	before, after     uint32
	beforeBy, afterBy []uint32
	crossings         []uint32 // one for each of afterBy
	count             uint64
	example           uint32
}

// AddChoices finds the flows that a choice would open after the change, and that were possible before
// neither without a choice nor with one. Flows that are open after the change without a choice are none
// of them.
func (c *Comparison) AddChoices(p Choosing) {
	groups := c.choosable(p)
	for _, instance := range p.instances() {
		at := pair{before: p.Before, after: p.After, was: &Capabilities{Instance: instance}}
		before, after := p.Before.open(instance), p.After.open(instance)
		beforeBy, afterBy := openBy(p.BeforeBy, instance), openBy(p.AfterBy, instance)
		for _, what := range []policy.Operation{read, write} {
			for i := range groups {
				g := &groups[i]
				if !before.may(what, g.before) && !after.may(what, g.after) && firstBy(what, beforeBy, g.beforeBy) < 0 {
					c.countChoice(at, what, g, p.AfterBy, firstBy(what, afterBy, g.afterBy))
				}
			}
		}
	}
}

// instances lists those that exist after a choice, in order.
func (p Choosing) instances() []Instance {
	var all []Instance
	for _, by := range p.AfterBy {
		for _, one := range by.Open.instances {
			all = append(all, one.Instance)
		}
	}
	slices.SortFunc(all, Instance.compare)
	return slices.CompactFunc(all, func(a, b Instance) bool { return a.compare(b) == 0 })
}

// choosable groups the conduits that are in another class in some state after the change. A choice changes
// nothing for others. States number the classes that they make differently, so numbers are not compared.
func (c *Comparison) choosable(p Choosing) []choosable {
	from := map[uint32]uint32{}
	for _, by := range p.AfterBy {
		for _, move := range slices.Concat(c.moves, by.Change.Moved) {
			from[move.ID] = move.From
		}
	}
	after := destinations(c.moves)
	beforeBy, afterBy := destinationsBy(p.BeforeBy), destinationsBy(p.AfterBy)
	at := map[string]int{}
	var groups []choosable
	for _, id := range slices.Sorted(maps.Keys(from)) {
		one := choosable{before: from[id], after: after.of(id, from[id]), example: id}
		key := binary.BigEndian.AppendUint32(nil, one.before)
		key = binary.BigEndian.AppendUint32(key, one.after)
		for _, moved := range beforeBy {
			one.beforeBy = append(one.beforeBy, moved.of(id, one.before))
			key = binary.BigEndian.AppendUint32(key, moved.of(id, one.before))
		}
		for _, moved := range afterBy {
			class := moved.of(id, one.before)
			one.afterBy = append(one.afterBy, class)
			key = binary.BigEndian.AppendUint32(key, class)
		}
		i, known := at[string(key)]
		if !known {
			i = len(groups)
			at[string(key)] = i
			groups = append(groups, one)
		}
		groups[i].count++
	}
	return groups
}

// destination are the classes into which conduits have moved.
type destination map[uint32]uint32

func destinations(moves []catalog.Move) destination {
	to := make(destination, len(moves))
	for _, move := range moves {
		to[move.ID] = move.To
	}
	return to
}

func destinationsBy(all []Chosen) []destination {
	var to []destination
	for _, by := range all {
		to = append(to, destinations(by.Change.Moved))
	}
	return to
}

// of returns a conduit's class, which was the one given.
func (d destination) of(id, before uint32) uint32 {
	if to, moved := d[id]; moved {
		return to
	}
	return before
}

// open returns what is not denied to an instance on a side.
func (s *Side) open(instance Instance) *Capabilities {
	if s == nil {
		return nothing
	}
	return s.Open.orNothing(instance)
}

func (r *Result) orNothing(instance Instance) *Capabilities {
	if c, found := r.Instance(instance); found {
		return c
	}
	return nothing
}

func openBy(all []Chosen, instance Instance) []*Capabilities {
	var list []*Capabilities
	for _, by := range all {
		list = append(list, by.Open.orNothing(instance))
	}
	return list
}

func (c *Capabilities) may(what policy.Operation, class uint32) bool {
	if what == read {
		return contains(c.Reads, class)
	}
	return contains(c.Writes, class)
}

// firstBy returns the number of the first choice that allows an access, or -1.
func firstBy(what policy.Operation, by []*Capabilities, classes []uint32) int {
	for i, class := range classes {
		if by[i].may(what, class) {
			return i
		}
	}
	return -1
}

// countChoice records that a choice opens a group's flows to an instance; below 0, none does.
func (c *Comparison) countChoice(p pair, what policy.Operation, g *choosable, by []Chosen, choice int) {
	if choice < 0 {
		return
	}
	info := by[choice].Change.After.Class(g.afterBy[choice])
	if g.crossings == nil {
		g.crossings = make([]uint32, len(by))
	}
	if g.crossings[choice] == 0 {
		c.crossings = append(c.crossings, crossing{from: g.before, count: g.count, example: g.example,
			chosen: info.Set + " " + info.Reference.String()})
		g.crossings[choice] = uint32(len(c.crossings)) //nolint:gosec // bounded by the conduits
	}
	r := c.row(p, what.String(), setName(p.plan(), info.Set), info.Reference.Policy, wouldOpen)
	c.countIn(r, g.crossings[choice]-1)
}
