// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// expect updates the list of instances from the facts that name them, and from the clock. change is
// nil if only time has passed.
func (u *update) expect(change *catalog.Change) {
	plan := u.old.plan
	var named, dropped []Instance
	if change != nil {
		named = plan.named(change.Added, false)
		for _, instance := range plan.named(change.Removed, false) {
			if !plan.expected(instance, u.engine.state) {
				dropped = append(dropped, instance)
			}
		}
	}
	if len(plan.Declared) > 0 {
		u.derive(change, &named, &dropped)
	}
	if len(named)+len(dropped) > 0 {
		u.relist(named, dropped)
	}
}

// relist adds instances to the list, unless they are there, and removes others.
func (u *update) relist(named, dropped []Instance) {
	leaving := slices.Clone(dropped)
	slices.SortFunc(leaving, Instance.compare)
	changed := slices.Concat(named, dropped)
	slices.SortFunc(changed, Instance.compare)
	changed = slices.CompactFunc(changed, func(a, b Instance) bool { return a.compare(b) == 0 })
	rest := u.instances
	next := make([]*Capabilities, 0, len(rest)+len(named))
	var fresh []int
	for _, instance := range changed {
		at, listed := findIn(rest, instance)
		next = append(next, rest[:at]...)
		rest = rest[at:]
		_, leaves := slices.BinarySearchFunc(leaving, instance, Instance.compare)
		switch {
		case leaves && listed:
			u.gone = append(u.gone, rest[0])
			rest = rest[1:]
		case !leaves && !listed:
			fresh = append(fresh, len(next))
			next = append(next, &Capabilities{Instance: instance})
		}
	}
	u.instances, u.fresh = append(next, rest...), make(map[int]bool)
	var later question
	for _, i := range fresh {
		c := u.instances[i]
		u.old.sessions.add(&c.Instance)
		if c.awaited = u.windows; c.awaited {
			later.tasks, later.only = append(later.tasks, c.Instance.Task), append(later.only, &c.Instance)
			continue
		}
		u.fresh[i] = true
		u.at(i).all = true
	}
	slices.Sort(later.tasks)
	later.tasks, later.what = slices.Compact(later.tasks), askEverything
	u.ask(later)
}

// named lists the instances that facts name: those of tasks with derived parameters, without their
// values, or the others.
func (p *Plan) named(facts []policy.Fact, derived bool) []Instance {
	var named []Instance
	for i := range p.Tasks {
		if p.Derives(p.Tasks[i].Name) != derived {
			continue
		}
		for _, expectation := range p.Tasks[i].Expect {
			order := expectation.order(p.Tasks[i].Parameters, p)
			for _, fact := range facts {
				if order == nil || fact.Conduit != expectation.Conduit || fact.Relation != expectation.Says ||
					len(fact.Arguments) != len(expectation.Parameters) {
					continue
				}
				if instance, ok := p.Tasks[i].named(fact, order); ok {
					named = append(named, instance)
				}
			}
		}
	}
	slices.SortFunc(named, Instance.compare)
	return slices.CompactFunc(named, func(a, b Instance) bool { return a.compare(b) == 0 })
}

// expected reports whether facts name an instance of a task with parameters, or it has been seen. The
// arguments that are derived are left out.
func (p *Plan) expected(instance Instance, facts policy.Facts) bool {
	task := p.task(instance.Task)
	for _, expectation := range task.Expect {
		order := expectation.order(task.Parameters, p)
		if order == nil {
			continue
		}
		pattern := policy.Pattern{Conduit: expectation.Conduit, Relation: expectation.Says,
			Arguments: make([]policy.Value, len(expectation.Parameters))}
		for i, at := range order {
			if at != derived {
				pattern.Arguments[at] = policy.String(instance.Arguments[i])
			}
		}
		if facts.Has(pattern) {
			return true
		}
	}
	_, seen := slices.BinarySearchFunc(p.Seen, instance, Instance.compare)
	return seen
}
