// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"cmp"
	"context"
	"slices"

	"shai.dev/monitor/internal/catalog"
)

// A population's decisions are made class by class and not instance by instance. Both ways
// make the same ones. But a policy and the facts about it are larger than an instance, and
// with many of them each decision about another class waits for memory.

const (
	// cohortSize is the number of instances that are analysed together: a bound for memory.
	cohortSize = 8192
	// wideInstance is the number of candidates from which an instance is analysed by itself. It
	// visits classes in their order anyway.
	wideInstance = 1024
	// classShare is the number of classes that a goroutine decides at a time.
	classShare = 256
)

// cohort is a number of instances that are analysed together.
type cohort struct {
	engine *engine
	wide   int // see wideInstance
	found  []*Capabilities
	// subjects are the instances; nil: its taint cannot be built.
	subjects []*subject
	who      []*subject // nil: nothing is left to decide
	// searched are the policies of which candidates has the classes already: see searchClasses.
	searched map[setPolicy]bool
	// candidates lists, in ascending order, the classes that each instance may be able to
	// read.
	candidates [][]uint32
	// places says where in pairs the decision about each candidate is.
	places [][]uint32
	// pairs are instances, by class; those of class c begin at starts[c].
	pairs, starts []uint32
	verdicts      []verdicts // of classShare classes each
}

// verdicts are the outcomes of consecutive pairs.
type verdicts struct {
	from   uint32 // the first pair
	held   []bool
	ends   []uint32 // of each pair's hashes
	hashes []conditionHash
	until  map[uint32]int64 // of the few that expire, by pair
}

// analyzeCohort analyses instances together and stores their capability sets in found.
func (e *engine) analyzeCohort(ctx context.Context, instances []Instance, found []*Capabilities,
	options Options) error {
	c := &cohort{
		engine: e, wide: cmp.Or(options.wide, wideInstance), found: found,
		subjects: make([]*subject, len(instances)), who: make([]*subject, len(instances)),
		candidates: make([][]uint32, len(instances)), places: make([][]uint32, len(instances)),
	}
	half, report := uint64(len(instances)/2), options.Progress
	options.Progress = nil
	err := parallel(ctx, len(instances), options, func(i int) { c.subject(i, instances[i]) })
	if err != nil {
		return err
	}
	c.searchClasses(ctx)
	options.Progress = within(report, 0, half)
	if err := parallel(ctx, len(instances), options, c.prepare); err != nil {
		return err
	}
	c.sort(e.state)
	options.Progress = within(report, half, uint64(len(instances)))
	if err := parallel(ctx, len(c.verdicts), options, c.decide); err != nil {
		return err
	}
	options.Progress = nil
	return parallel(ctx, len(instances), options, c.assemble)
}

// within maps a step's progress to a part of the whole.
func within(report Progress, from, to uint64) Progress {
	if report == nil {
		return nil
	}
	return func(done, total uint64) { report(from+(to-from)*done/max(total, 1), 0) }
}

// subject prepares an instance. One whose taint cannot be built has no access, and the report warns of it.
func (c *cohort) subject(i int, instance Instance) {
	c.found[i] = &Capabilities{Instance: instance}
	if who, err := newSubject(c.engine.plan, c.engine.state, instance); err == nil {
		c.subjects[i] = who
	}
}

// prepare finds what an instance may be able to read, and makes its other decisions.
func (c *cohort) prepare(i int) {
	out, who := c.found[i], c.subjects[i]
	if who == nil {
		return
	}
	searched := c.searched
	if !who.isNamed() {
		searched = nil
	}
	candidates := c.engine.readable(who, c.candidates[i], searched)
	c.candidates[i] = nil
	if len(candidates) >= c.wide {
		out.Reads, out.readsOn = flatten(c.engine.tryEach(who, read, candidates, nil))
	} else {
		c.who[i], c.candidates[i] = who, candidates
	}
	out.Writes, out.writesOn = flatten(c.engine.writable(who, 1))
	c.engine.tryOthers(who, out)
	out.begins = who.next.or(0)
}

// sort arranges the pairs by class.
func (c *cohort) sort(state *catalog.State) {
	next := make([]uint32, state.Classes()+2)
	for _, classes := range c.candidates {
		for _, class := range classes {
			next[class+1]++
		}
	}
	for class := 1; class < len(next); class++ {
		next[class] += next[class-1]
	}
	c.starts = slices.Clone(next)
	c.pairs = make([]uint32, next[len(next)-1])
	all := make([]uint32, len(c.pairs))
	for i, classes := range c.candidates {
		c.places[i], all = all[:len(classes):len(classes)], all[len(classes):]
		for k, class := range classes {
			c.places[i][k] = next[class]
			c.pairs[next[class]] = uint32(i)
			next[class]++
		}
	}
	c.verdicts = make([]verdicts, len(c.starts)/classShare+1)
}

// decide makes the decisions about classShare classes.
func (c *cohort) decide(part int) {
	first := part * classShare
	last := min(first+classShare, len(c.starts)-1)
	if first >= last {
		return
	}
	v := &c.verdicts[part]
	v.from = c.starts[first]
	count := c.starts[last] - v.from
	v.held, v.ends = make([]bool, count), make([]uint32, count)
	for class := first; class < last; class++ {
		for pair := c.starts[class]; pair < c.starts[class+1]; pair++ {
			f, ok := c.engine.try(c.who[c.pairs[pair]], read, uint32(class)) //nolint:gosec // one of the catalog's
			v.add(pair-v.from, f, ok)
		}
	}
}

// add stores the outcome of the next pair.
func (v *verdicts) add(pair uint32, f footprint, ok bool) {
	if ok {
		v.held[pair] = true
		v.hashes = append(v.hashes, f.hashes...)
		if f.until != never {
			if v.until == nil {
				v.until = make(map[uint32]int64)
			}
			v.until[pair] = f.until
		}
	}
	v.ends[pair] = uint32(len(v.hashes)) //nolint:gosec // bounded by the pairs
}

// of returns what a pair that holds rests on.
func (v *verdicts) of(pair uint32) footprint {
	f := footprint{until: never}
	start := uint32(0)
	if pair > 0 {
		start = v.ends[pair-1]
	}
	f.hashes = v.hashes[start:v.ends[pair]]
	if until, expires := v.until[pair]; expires {
		f.until = until
	}
	return f
}

// assemble collects the verdicts on one instance.
func (c *cohort) assemble(i int) {
	if c.who[i] == nil {
		return
	}
	var reads holds
	for k, class := range c.candidates[i] {
		v := &c.verdicts[class/classShare]
		if pair := c.places[i][k] - v.from; v.held[pair] {
			if reads == nil {
				reads = make(holds, 0, len(c.candidates[i]))
			}
			reads = append(reads, hold{class, v.of(pair)})
		}
	}
	c.found[i].Reads, c.found[i].readsOn = flatten(reads)
	c.found[i].begins = c.who[i].next.or(c.found[i].begins)
}
