// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"slices"
	"time"

	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/policy"
)

// An instance is given by facts, or because it was seen: without the values that are derived, which make
// it one or two instances of the list. Where these may be others after a change, they are compared.

// derive adds to named and dropped the instances with derived values that are to be listed from now on, and
// those that no session can be of any more or that nothing expects. change is nil if only time has passed.
func (u *update) derive(change *catalog.Change, named, dropped *[]Instance) {
	plan, state := u.old.plan, u.engine.state
	var gone, moved []Instance
	if change != nil {
		gone = plan.named(change.Removed, true)
		facts := slices.Concat(change.Added, change.Removed)
		moved = plan.named(facts, true)
		for _, user := range plan.Concerned(facts) {
			moved = append(moved, u.givenTo(user)...)
		}
	}
	if plan.windowsMove(u.old.Analyzed, u.options.Now) {
		u.windows = true
		moved = slices.Concat(moved, plan.given(state))
		for _, c := range u.instances {
			moved = append(moved, plan.withoutDerived(c.Instance))
		}
	}
	slices.SortFunc(moved, Instance.compare)
	for _, given := range slices.CompactFunc(moved, func(a, b Instance) bool { return a.compare(b) == 0 }) {
		if !plan.Derives(given.Task) {
			continue
		}
		expected := plan.expected(given, state)
		_, isGone := slices.BinarySearchFunc(gone, given, Instance.compare)
		var want []Instance // of which sessions can be
		if expected || !isGone {
			want = plan.complete(given, state, u.options.Now)
		}
		has := u.listed(given)
		*dropped = append(*dropped, without(has, want)...)
		if expected { // else it was added because it was seen, and others like it are when they are
			*named = append(*named, without(want, has)...)
		}
	}
}

// without returns the instances of a list that another one, of one or two, does not have.
func without(list, other []Instance) (left []Instance) {
	for _, one := range list {
		if !slices.ContainsFunc(other, func(o Instance) bool { return o.compare(one) == 0 }) {
			left = append(left, one)
		}
	}
	return left
}

// listed returns the instances of the list that have been derived from one.
func (u *update) listed(given Instance) (found []Instance) {
	plan := u.old.plan
	user := plan.task(given.Task).values(given)[manifest.ParameterUser]
	if user == "" {
		for _, c := range u.instances { // there are few without a user
			if c.Instance.Task == given.Task && plan.withoutDerived(c.Instance).compare(given) == 0 {
				found = append(found, c.Instance)
			}
		}
		return found
	}
	for _, instance := range u.old.sessions.of(user) {
		if _, is := u.find(*instance); is && plan.withoutDerived(*instance).compare(given) == 0 {
			found = append(found, *instance)
		}
	}
	return found
}

// givenTo returns the instances of a user as they are given: those that are expected, and those that
// are listed.
func (u *update) givenTo(user string) (given []Instance) {
	plan := u.old.plan
	for i := range plan.Tasks {
		task := &plan.Tasks[i]
		at := slices.Index(task.Parameters, manifest.ParameterUser)
		if at < 0 || !plan.Derives(task.Name) {
			continue
		}
		for _, expectation := range task.Expect {
			given = append(given, expectation.instances(task, plan, u.engine.state, user)...)
		}
		for _, seen := range plan.Seen {
			if seen.Task == task.Name && seen.Arguments[at] == user {
				given = append(given, seen)
			}
		}
	}
	for _, instance := range u.old.sessions.of(user) {
		if _, is := u.find(*instance); is {
			given = append(given, plan.withoutDerived(*instance))
		}
	}
	return given
}

// windowsMove reports whether a window has begun since an instant, or the clock was set back.
func (p *Plan) windowsMove(since, now time.Time) bool {
	at, ok := p.NextWindow(since)
	return ok && (!at.After(now) || now.Before(since))
}

// instances returns the instances of a task that facts name, all or those of one user; "": all.
func (e Expectation) instances(task *Task, plan *Plan, facts policy.Facts, user string) (instances []Instance) {
	order := e.order(task.Parameters, plan)
	if order == nil {
		return nil
	}
	pattern := policy.Pattern{Conduit: e.Conduit, Relation: e.Says, Arguments: make([]policy.Value, len(e.Parameters))}
	if at := slices.Index(e.Parameters, manifest.ParameterUser); at >= 0 && user != "" {
		pattern.Arguments[at] = policy.String(user)
	}
	facts.Lookup(pattern, func(fact policy.Fact) bool {
		if instance, ok := task.named(fact, order); ok {
			instances = append(instances, instance)
		}
		return true
	})
	return instances
}
