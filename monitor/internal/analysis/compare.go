// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"cmp"
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// Side is one pipeline before or after a change of bundle.
type Side struct {
	Open *Result // accesses that are not denied (Options.Open)
	Held *Result // accesses that every policy allows; Open itself if all are enforced
}

// Changes lists the flows that a change of bundle opens and closes. A flow is an expected
// access of one instance to one conduit.
type Changes struct {
	Before, After uint64 // flows that are not denied
	// Opened and Closed are flows that are not denied. WouldClose are flows that every
	// policy allowed, and that afterwards only policies in modes Audit and Warn forbid.
	Opened, Closed, WouldClose []FlowChange
	// WouldOpen are flows that are in none of these, and that a choice of a document's policy would open
	// afterwards, and none would have opened before.
	WouldOpen      []FlowChange
	Users          []string // of instances with a flow opened or closed, sorted
	Documents      []uint32 // conduits of such a flow: one for each way in which they changed
	DocumentsTotal uint64
}

// FlowChange is a group of flows of one task to the conduits of one set under one policy.
type FlowChange struct {
	Pipeline, Task, Access, Conduits string
	Policy                           string // the conduits' in the candidate; "" for none
	Instance                         Instance
	Conduit                          string // an example
	Instances                        uint64
	Classes                          uint64 // of conduits; 0 if they have none
	Documents                        uint64 // conduits
	Flows                            uint64
}

// Comparison collects the changes of all pipelines.
type Comparison struct {
	before, after *catalog.State
	moves         []catalog.Move
	crossings     []crossing
	from, to      map[uint32][]uint32 // crossings by class
	touched       []bool              // crossings with a flow opened or closed
	users         map[string]bool
	changes       Changes
	rows          [4]map[rowKey]*row // by outcome
}

// outcome is the change of a flow.
type outcome int

const (
	opened outcome = iota
	closed
	wouldClose
	wouldOpen
)

type rowKey struct{ pipeline, task, access, set, policy string }

type row struct {
	change    FlowChange
	last      *Capabilities // the instance that was counted last
	crossings map[uint32]bool
	singles   map[string]bool
}

// NewComparison prepares the comparison of the two states of a change.
func NewComparison(change *catalog.Change) *Comparison {
	c := &Comparison{
		before: change.Before, after: change.After, moves: change.Moved, users: map[string]bool{},
		from: map[uint32][]uint32{}, to: map[uint32][]uint32{},
	}
	for i := range c.rows {
		c.rows[i] = map[rowKey]*row{}
	}
	c.stayed(c.moved(change.Moved))
	c.places()
	for i, one := range c.crossings {
		c.from[one.from] = append(c.from[one.from], uint32(i))
		c.to[one.to] = append(c.to[one.to], uint32(i))
	}
	c.touched = make([]bool, len(c.crossings))
	return c
}

// Add compares one pipeline. A side is nil if the pipeline does not exist there.
func (c *Comparison) Add(before, after *Side) {
	old, next := instancesOf(before), instancesOf(after)
	for len(old)+len(next) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(next) == 0:
			order = -1
		default:
			order = old[0].Instance.compare(next[0].Instance)
		}
		one := pair{before: before, after: after}
		if order <= 0 {
			one.was, old = old[0], old[1:]
		}
		if order >= 0 {
			one.is, next = next[0], next[1:]
		}
		c.instance(one)
	}
}

func instancesOf(side *Side) []*Capabilities {
	if side == nil {
		return nil
	}
	return side.Open.instances
}

// pair is one instance on both sides; was or is may be nil.
type pair struct {
	before, after *Side
	was, is       *Capabilities
}

func (p pair) plan() *Plan {
	if p.after != nil {
		return p.after.Open.plan
	}
	return p.before.Open.plan
}

// held returns what every policy allows the instance on a side.
func held(side *Side, open *Capabilities) *Capabilities {
	if side == nil || open == nil {
		return nothing
	}
	if side.Held == side.Open {
		return open
	}
	if c, found := side.Held.Instance(open.Instance); found {
		return c
	}
	return nothing
}

var nothing = &Capabilities{}

func (c *Comparison) instance(p pair) {
	wasHeld, isHeld := held(p.before, p.was), held(p.after, p.is)
	if p.was == nil {
		p.was = &Capabilities{Instance: p.is.Instance}
	}
	if p.is == nil {
		p.is = &Capabilities{Instance: p.was.Instance}
	}
	c.classes(p, read, p.was.Reads, p.is.Reads, wasHeld.Reads, isHeld.Reads)
	c.classes(p, write, p.was.Writes, p.is.Writes, wasHeld.Writes, isHeld.Writes)
	c.singles(p, wasHeld.Others, isHeld.Others)
	c.examples(p)
}

// classes compares what an instance may do with classes before and after.
func (c *Comparison) classes(p pair, what policy.Operation, was, is, wasHeld, isHeld []uint32) {
	for _, class := range was {
		for _, i := range c.from[class] {
			one := &c.crossings[i]
			c.changes.Before += one.count
			switch {
			case !contains(is, one.to):
				c.count(p, what, i, closed)
			case contains(wasHeld, one.from) && !contains(isHeld, one.to):
				c.count(p, what, i, wouldClose)
			}
		}
	}
	for _, class := range is {
		for _, i := range c.to[class] {
			c.changes.After += c.crossings[i].count
			if !contains(was, c.crossings[i].from) {
				c.count(p, what, i, opened)
			}
		}
	}
}

func contains(classes []uint32, class uint32) bool {
	_, found := slices.BinarySearch(classes, class)
	return found
}

// count records that the instance's flows of a crossing change.
func (c *Comparison) count(p pair, what policy.Operation, i uint32, how outcome) {
	one := &c.crossings[i]
	info, owner := c.after.Class(one.to), ""
	if info.Class != nil && info.Policy != nil {
		owner = info.Reference.Policy
	} else {
		info = c.before.Class(one.from)
	}
	c.countIn(c.row(p, what.String(), setName(p.plan(), info.Set), owner, how), i)
	if how != wouldClose {
		c.touched[i] = true
		c.noteUser(p)
	}
}

// setName returns the plan's name of a set of the catalog.
func setName(plan *Plan, set string) string {
	name := ""
	for _, s := range plan.Sets {
		if s.Catalog == set {
			name = s.Name
		}
	}
	return name
}

func (c *Comparison) countIn(r *row, i uint32) {
	one := &c.crossings[i]
	r.change.Flows += one.count
	if !r.crossings[i] {
		r.crossings[i] = true
		r.change.Documents += one.count
	}
	if r.change.Conduit == "" {
		r.change.Conduit = c.name(one)
	}
}

// singles compares accesses to conduits without a class.
func (c *Comparison) singles(p pair, wasHeld, isHeld []Other) {
	c.changes.Before += uint64(len(p.was.Others))
	c.changes.After += uint64(len(p.is.Others))
	for _, other := range p.was.Others {
		switch {
		case !slices.Contains(p.is.Others, other):
			c.countSingle(p, other, closed)
		case slices.Contains(wasHeld, other) && !slices.Contains(isHeld, other):
			c.countSingle(p, other, wouldClose)
		}
	}
	for _, other := range p.is.Others {
		if !slices.Contains(p.was.Others, other) {
			c.countSingle(p, other, opened)
		}
	}
}

func (c *Comparison) countSingle(p pair, other Other, how outcome) {
	what, owner := read, ""
	if other.Write {
		what = write
	}
	if set := p.plan().set(other.Set); set != nil && set.Policy != nil {
		owner = set.Policy.Policy
	} else if conduit, found := c.after.ConduitNamed(other.Conduit); found {
		owner = conduit.Policy.Template().File()
	}
	r := c.row(p, what.String(), other.Set, owner, how)
	r.change.Flows++
	if !r.singles[other.Conduit] {
		r.singles[other.Conduit] = true
		r.change.Documents++
	}
	if r.change.Conduit == "" {
		r.change.Conduit = other.Conduit
	}
	if how != wouldClose {
		c.noteUser(p)
	}
}

func (c *Comparison) row(p pair, what, set, owner string, how outcome) *row {
	plan := p.plan()
	key := rowKey{plan.Pipeline, p.was.Instance.Task, what, set, owner}
	r := c.rows[how][key]
	if r == nil {
		r = &row{crossings: map[uint32]bool{}, singles: map[string]bool{}, change: FlowChange{
			Pipeline: plan.Pipeline, Task: key.task, Access: what, Conduits: set, Policy: owner,
			Instance: p.was.Instance,
		}}
		c.rows[how][key] = r
	}
	if r.last != p.was {
		r.last = p.was
		r.change.Instances++
	}
	return r
}

func (c *Comparison) noteUser(p pair) {
	task := p.plan().task(p.was.Instance.Task)
	if task == nil && p.before != nil {
		task = p.before.Open.plan.task(p.was.Instance.Task)
	}
	if task == nil {
		return
	}
	if user := task.values(p.was.Instance)["user"]; user != "" {
		c.users[user] = true
	}
}

// Changes returns the result, rows with the most flows first.
func (c *Comparison) Changes() *Changes {
	out := c.changes
	out.Opened, out.Closed = c.list(opened), c.list(closed)
	out.WouldClose, out.WouldOpen = c.list(wouldClose), c.list(wouldOpen)
	out.Users = slices.Sorted(maps.Keys(c.users))
	for i, touched := range c.touched {
		if !touched || c.crossings[i].example == 0 {
			continue
		}
		out.Documents = append(out.Documents, c.crossings[i].example)
		out.DocumentsTotal += c.crossings[i].count
	}
	slices.Sort(out.Documents)
	return &out
}

func (c *Comparison) list(how outcome) []FlowChange {
	list := make([]FlowChange, 0, len(c.rows[how]))
	for _, r := range c.rows[how] {
		classes := map[any]bool{}
		for i := range r.crossings {
			if one := &c.crossings[i]; one.chosen != "" {
				classes[one.chosen] = true // states of different choices number their classes differently
			} else {
				classes[cmp.Or(one.to, one.from)] = true
			}
		}
		r.change.Classes = uint64(len(classes))
		list = append(list, r.change)
	}
	slices.SortFunc(list, func(a, b FlowChange) int {
		return cmp.Or(cmp.Compare(b.Flows, a.Flows), cmp.Compare(a.Pipeline, b.Pipeline), cmp.Compare(a.Task, b.Task),
			cmp.Compare(a.Access, b.Access), cmp.Compare(a.Conduits, b.Conduits), cmp.Compare(a.Policy, b.Policy))
	})
	return list
}
