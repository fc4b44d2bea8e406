// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/policy"
)

// expect updates the list of instances from the facts that name them, and from the clock. change is
// nil if only time has passed.
func (u *update) expect(change *catalog.Change) {
	plan := u.old.plan
	named, dropped := u.derived(change)
	if change != nil {
		named = append(named, plan.named(change.Added, false)...)
		for _, instance := range plan.named(change.Removed, false) {
			if !plan.expected(instance, u.engine.state) {
				dropped = append(dropped, instance)
			}
		}
	}
	if len(named)+len(dropped) > 0 {
		u.relist(named, dropped)
	}
}

// relist adds instances to the list, unless they are there, and removes others.
func (u *update) relist(named, dropped []Instance) {
	next := make([]*Capabilities, 0, len(u.instances)+len(named))
	leaving := make(map[string]bool, len(dropped))
	for _, instance := range dropped {
		leaving[instance.Name()] = true
	}
	for _, c := range u.instances {
		if len(leaving) > 0 && leaving[c.Instance.Name()] {
			u.gone = append(u.gone, c)
			continue
		}
		next = append(next, c)
	}
	fresh := make(map[*Capabilities]bool)
	sorted := len(next)
	for _, instance := range named {
		if _, found := findIn(next[:sorted], instance); !found {
			c := &Capabilities{Instance: instance}
			next = append(next, c)
			fresh[c] = true
		}
	}
	slices.SortFunc(next, func(a, b *Capabilities) int { return a.Instance.compare(b.Instance) })
	u.instances, u.fresh = next, make(map[int]bool)
	for i, c := range next {
		if fresh[c] {
			u.fresh[i] = true
			u.at(i).all = true
			u.old.sessions.add(&c.Instance)
		}
	}
}

// derived returns the instances with derived parameters that are new, and those that no session can
// have any more or that nothing expects.
func (u *update) derived(change *catalog.Change) (named, dropped []Instance) {
	plan, state, now := u.old.plan, u.engine.state, u.options.Now
	var gone []Instance // as the facts gave them: without what is derived
	if change != nil {
		gone = plan.named(change.Removed, true)
	}
	if !plan.moves(change, u.old.Analyzed, now) {
		return nil, nil
	}
	want := plan.Instances(state, now)
	for _, instance := range want {
		if plan.Derives(instance.Task) {
			if _, found := findIn(u.instances, instance); !found {
				named = append(named, instance)
			}
		}
	}
	for _, c := range u.instances {
		if !plan.Derives(c.Instance.Task) {
			continue
		}
		if _, expected := slices.BinarySearchFunc(want, c.Instance, Instance.compare); expected {
			continue
		}
		// An instance that was added because it was seen stays, as long as sessions can be of it.
		isGone := slices.ContainsFunc(gone, func(one Instance) bool { return plan.given(c.Instance).compare(one) == 0 })
		if isGone || !slices.ContainsFunc(plan.complete(c.Instance, state, now), func(one Instance) bool {
			return one.compare(c.Instance) == 0
		}) {
			dropped = append(dropped, c.Instance)
		}
	}
	return named, dropped
}

// moves reports whether derived values may have changed since an instant, by a change of facts (nil:
// there is none) or by time.
func (p *Plan) moves(change *catalog.Change, since, now time.Time) bool {
	if len(p.Declared) == 0 {
		return false
	}
	if at, ok := p.NextWindow(since); ok && (!at.After(now) || now.Before(since)) {
		return true
	}
	if change == nil {
		return false
	}
	facts := slices.Concat(change.Added, change.Removed)
	return len(p.Concerned(facts))+len(p.named(facts, true)) > 0
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

// expected reports whether Instances lists an instance of a task with parameters.
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
			pattern.Arguments[at] = policy.String(instance.Arguments[i])
		}
		if facts.Has(pattern) {
			return true
		}
	}
	return slices.ContainsFunc(p.Seen, func(seen Instance) bool { return seen.compare(instance) == 0 })
}
