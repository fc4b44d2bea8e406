// SPDX-License-Identifier: BSD-2-Clause

package analysis

import (
	"context"
	"slices"

	"shai.dev/monitor/internal/catalog"
)

// Postpone returns the result on the state after a change that brings classes, or takes the last
// conduit from some, and changes neither a fact nor the bundle. It decides nothing, and so takes
// no time: until Decide, accesses to the classes that it did not have are decided when they
// happen. ok is false if the change is another one, or is not of the result's state.
func (r *Result) Postpone(change *catalog.Change) (next *Result, ok bool) {
	if change.Bundle || len(change.Added)+len(change.Removed) > 0 || !r.Current(change.Before) {
		return nil, false
	}
	copied := *r
	copied.state = change.After
	copied.BundleHash, copied.FactsVersion = change.After.BundleHash(), change.After.FactsVersion()
	return &copied, true
}

// RestsOn reports whether accesses may rest on the policies of conduits, or on there being such
// conduits, that a change has moved. They have to be decided again: see Update.
func (r *Result) RestsOn(change *catalog.Change) bool {
	return r.Current(change.Before) && len(r.index.resting(changedHashes(change))) > 0
}

// Uses reports whether the plan expects instances of a task to use one of the classes.
func (p *Plan) Uses(state *catalog.State, name string, classes []uint32) bool {
	task := p.task(name)
	return task != nil && slices.ContainsFunc(classes, func(class uint32) bool {
		set := state.Class(class).Set
		return p.lists(task.Reads, set) || p.lists(task.Writes, set)
	})
}

// Decide returns the result with the decisions that Postpone has left out, for some of its
// instances, and those of them that have gained or lost something. The state is the one that the
// result belongs to.
func (r *Result) Decide(ctx context.Context, state *catalog.State, classes []uint32, instances []Instance,
	options Options) (*Result, []Affected, error) {
	u := r.begin(state, options)
	u.questions, u.postponed = nil, u.questions
	for _, instance := range instances {
		at, found := r.find(instance)
		if !found {
			continue // it is no longer expected
		}
		for _, class := range classes {
			u.markClass(at, class)
		}
	}
	return u.finish(ctx)
}
