// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/wire"
	"shai.dev/monitor/policy"
)

// A session acts for one instance. Which one that is follows from its user and region, which the
// monitor has verified, from facts and from the clock: package analysis derives it. When it follows
// no longer, the session ends, in every mode and whatever the revocation, because its taint does not
// describe any more on whose behalf it reads. Its client connects again, and gets the instance that
// follows then.
//
// A supervisor knows a set by its user and region. It is told of the set of one instance of the two
// at a time, the one that follows now, and until when: from then on it asks before it binds a
// session, and ends those that are bound.

// derive returns the values of the parameters of a session's task now.
func (p *Pipeline) derive(task *Task, principal, region string) (map[string]string, error) {
	return p.plan.Derive(task.name, principal, region, p.services.state(), time.Now())
}

// instanceOf returns an instance in the form that the analysis uses.
func instanceOf(task *Task, values map[string]string) analysis.Instance {
	instance := analysis.Instance{Task: task.name}
	for _, parameter := range task.spec.Parameters {
		instance.Arguments = append(instance.Arguments, values[parameter])
	}
	return instance
}

// verified leaves out the values that are derived anew each time.
func (p *Pipeline) verified(values map[string]string) map[string]string {
	return map[string]string{manifest.ParameterUser: values[manifest.ParameterUser],
		manifest.ParameterRegion: values[manifest.ParameterRegion]}
}

// errFormer is why nothing is decided for a session.
var errFormer = errors.New("the session has ended")

// outdated says why a set, which may be nil, is not that of its user and region at an instant; nil if it
// is. Who waits for the time to end a session may be late, and nothing is decided for it then.
func (p *Pipeline) outdated(holds *capabilitySet, facts policy.Facts, now time.Time) error {
	if holds == nil || !p.plan.Derives(holds.instance.Task) {
		return nil
	}
	instance, who := holds.instance, holds.subject.Session
	values, err := p.plan.Derive(instance.Task, who.Principal, who.Region, facts, now)
	if err != nil {
		return fmt.Errorf("%w: %w; connect again then", errFormer, err)
	}
	if next := instanceOf(p.tasks[instance.Task], values).Name(); next != instance.Name() {
		return fmt.Errorf("%w: it acts for %s, and its user is %s now; connect again", errFormer, instance.Name(), next)
	}
	return nil
}

func (p *Pipeline) isOutdated(holds *capabilitySet, now time.Time) bool {
	return p.outdated(holds, p.services.state(), now) != nil
}

// NextWindow returns when time next changes an instance; ok is false if it never does.
func (p *Pipeline) NextWindow(now time.Time) (at time.Time, ok bool) { return p.plan.NextWindow(now) }

// EndOutdated ends the sessions whose user and region give another instance than theirs at an
// instant, those too that a supervisor has not reported yet, and drops the sets of past windows that no
// analysis knows. change is what was changed; nil: time has passed. It returns the number of sessions.
// The caller holds Binding, and waits for the supervisors.
func (p *Pipeline) EndOutdated(change *catalog.Change, now time.Time) (reset int) {
	concerns := p.concerned(change)
	if concerns == nil {
		return 0
	}
	over := slices.DeleteFunc(p.live(), func(s *session) bool {
		holds := s.bound()
		return holds == nil || !concerns(holds.subject.Session.Principal) || !p.isOutdated(holds, now)
	})
	p.forgetOutdated(concerns, now)
	p.dropSets(func(holds *capabilitySet) bool {
		return !holds.analyzed && concerns(holds.subject.Session.Principal) && p.isOutdated(holds, now)
	}, "")
	killAll(over)
	return len(over)
}

// concerned returns for which users a change, or the passing of time, may give other instances; nil
// if for none.
func (p *Pipeline) concerned(change *catalog.Change) func(user string) bool {
	switch {
	case !slices.ContainsFunc(p.order, p.plan.Derives):
		return nil
	case change == nil || change.Bundle:
		return func(string) bool { return true }
	}
	users := p.plan.Concerned(slices.Concat(change.Removed, change.Added))
	if len(users) == 0 {
		return nil
	}
	return func(user string) bool {
		_, found := slices.BinarySearch(users, user)
		return found
	}
}

// forgetOutdated makes the supervisors forget outdated sets and end their sessions.
func (p *Pipeline) forgetOutdated(concerns func(user string) bool, now time.Time) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	for _, v := range p.supervised {
		for _, holds := range v.inUse() {
			if !concerns(holds.subject.Session.Principal) {
				continue
			}
			if err := p.outdated(holds, p.services.state(), now); err != nil {
				v.tellForgotten(holds, wire.Truncate(err.Error(), wire.ReasonMax))
			}
		}
		v.dropEnded(now)
	}
}
