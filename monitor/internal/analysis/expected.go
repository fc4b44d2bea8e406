// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// expect updates the list of instances from the facts that name them.
func (u *update) expect(change *catalog.Change) {
	named, dropped := u.old.plan.named(change.Added), u.old.plan.named(change.Removed)
	if len(named)+len(dropped) == 0 {
		return
	}
	next := slices.Clone(u.instances)
	for _, instance := range dropped {
		i, found := findIn(next, instance)
		if found && !u.old.plan.expected(instance, u.engine.state) {
			u.gone = append(u.gone, next[i])
			next = slices.Delete(next, i, i+1)
		}
	}
	fresh := make(map[*Capabilities]bool)
	for _, instance := range named {
		if i, found := findIn(next, instance); !found {
			c := &Capabilities{Instance: instance}
			next = slices.Insert(next, i, c)
			fresh[c] = true
		}
	}
	u.instances, u.fresh = next, make(map[int]bool)
	for i, c := range next {
		if fresh[c] {
			u.fresh[i] = true
			u.at(i).all = true
			u.old.sessions.add(&c.Instance)
		}
	}
}

// named lists the instances that facts name.
func (p *Plan) named(facts []policy.Fact) []Instance {
	var named []Instance
	for i := range p.Tasks {
		for _, expectation := range p.Tasks[i].Expect {
			order := expectation.order(p.Tasks[i].Parameters)
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

// expected reports whether Instances lists an instance of a task with parameters.
func (p *Plan) expected(instance Instance, facts policy.Facts) bool {
	task := p.task(instance.Task)
	for _, expectation := range task.Expect {
		order := expectation.order(task.Parameters)
		if order == nil {
			continue
		}
		pattern := policy.Pattern{Conduit: expectation.Conduit, Relation: expectation.Says,
			Arguments: make([]policy.Value, len(expectation.Parameters))}
		for i, at := range order {
			pattern.Arguments[at] = policy.String(instance.Arguments[i])
		}
		if facts.Has(pattern) {
			return true
		}
	}
	return slices.ContainsFunc(p.Seen, func(seen Instance) bool { return seen.compare(instance) == 0 })
}
