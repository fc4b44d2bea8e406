// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"maps"
	"slices"

	"shai.dev/monitor/internal/catalog"
)

// Access is something that an instance does and that no plan expected: that it exists, or
// that it reads a class.
type Access struct {
	Instance Instance
	Class    uint32 // 0: none
}

// Extend returns the result with accesses that were not expected, and the instances that have
// gained one. It analyses the instances that the result does not have, and decides whether
// each instance may read the class. What is validated has its state conditions, like an
// access that was expected: Update and Expire remove it when they no longer hold, and a run
// with [Options].Earlier keeps it. The state is the one that the result belongs to.
func (r *Result) Extend(ctx context.Context, state *catalog.State, accesses []Access, options Options) (*Result,
	[]Affected, error) {
	u := r.begin(state, options)
	u.questions, u.postponed = nil, u.questions
	u.admit(accesses)
	for _, access := range accesses {
		i, found := u.find(access.Instance)
		if found && access.Class != 0 && !slices.Contains(u.instances[i].Reads, access.Class) {
			d := u.at(i)
			d.mark(&d.reads, access.Class)
		}
	}
	return u.finish(ctx)
}

// admit adds the instances that the result does not have, if their taint can be built.
func (u *update) admit(accesses []Access) {
	added := make(map[string]bool)
	var fresh []*Capabilities
	for _, access := range accesses {
		name := access.Instance.Name()
		if _, known := u.old.find(access.Instance); known || added[name] {
			continue
		}
		if _, err := newSubject(u.engine.plan, u.engine.state, access.Instance); err != nil {
			continue
		}
		added[name] = true
		fresh = append(fresh, &Capabilities{Instance: access.Instance})
	}
	if len(fresh) == 0 {
		return
	}
	slices.SortFunc(fresh, func(a, b *Capabilities) int { return a.Instance.compare(b.Instance) })
	u.include(slices.Clone(u.instances), fresh)
}

// include puts instances, in their order, among the others, which the update owns.
func (u *update) include(others, fresh []*Capabilities) {
	u.instances, u.fresh = others, make(map[int]bool)
	u.instances = slices.Grow(u.instances, len(fresh))[:len(others)+len(fresh)]
	for from, i := len(others)-1, len(u.instances)-1; len(fresh) > 0; i-- { // from behind, to move each once
		last := fresh[len(fresh)-1]
		if from >= 0 && others[from].Instance.compare(last.Instance) > 0 {
			u.instances[i] = others[from]
			from--
			continue
		}
		u.instances[i], fresh = last, fresh[:len(fresh)-1]
		u.fresh[i] = true
		u.at(i).all = true
		u.old.sessions.add(&last.Instance)
	}
}

// alsoReads decides whether an instance may read classes that no expectation names.
func (e *engine) alsoReads(c *Capabilities, classes []uint32) {
	if len(classes) == 0 {
		return
	}
	who, err := newSubject(e.plan, e.state, c.Instance)
	if err != nil {
		return // it has no access
	}
	again := make(map[uint32]bool, len(classes))
	for _, class := range classes {
		again[class] = true
	}
	c.setReads(e.retry(who, read, c.Reads, &c.readsOn, again))
	c.begins = who.next.or(c.begins)
}

// keep decides again on what an earlier result says that an instance may read, and that this
// run has not decided on.
func (e *engine) keep(c *Capabilities, earlier *Result) {
	if earlier == nil {
		return
	}
	if before, known := earlier.Instance(c.Instance); known {
		e.alsoReads(c, minus(before.Reads, c.Reads))
	}
}

// wanted lists, in ascending order, the classes that an instance read before, and those that
// are marked.
func (d *dirty) wanted(before *Capabilities) []uint32 {
	all := slices.Concat(before.Reads, slices.Collect(maps.Keys(d.reads)))
	slices.Sort(all)
	return slices.Compact(all)
}
