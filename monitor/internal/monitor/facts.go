// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/knownfacts"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/policy"
)

// ChangeFacts implements [api.Service]. For sessions that begin, the change of the state
// and of the capability sets is one step.
func (m *Monitor) ChangeFacts(ctx context.Context, change api.FactChange) (api.FactResult, error) {
	requested := time.Now()
	m.changing.Lock()
	defer m.changing.Unlock()
	if err := m.checkAdded(change); err != nil {
		m.metrics.FactsChanged(false)
		return api.FactResult{}, err
	}
	result, err := m.changeFacts(ctx, requested, func(w catalog.Writer) (*catalog.Change, error) {
		return w.ChangeFacts(factsFrom(change.Remove), factsFrom(change.Add))
	})
	if err == nil {
		result.Warnings = append(result.Warnings, m.undeclared(change.Add)...)
	}
	return result, err
}

// checkAdded refuses facts that contradict what a FactSource declares about their relation, or that the monitor
// could not use. All of them are named.
func (m *Monitor) checkAdded(change api.FactChange) error {
	bundle := m.currentBundle()
	var wrong []error
	for _, fact := range change.Add {
		if bundle != nil {
			wrong = append(wrong, bundle.CheckFact(fact.Conduit, fact.Says, fact.Tuple))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return api.Invalid("change facts", "correct the facts, or the declaration in spec.relations", "%v", err)
	}
	known := m.knownThen(change)
	for _, fact := range change.Add {
		wrong = append(wrong, known.Check(fact.Conduit, fact.Says, fact.Tuple))
	}
	if err := errors.Join(wrong...); err != nil {
		return api.Invalid("change facts", "correct the facts, or remove what is in force in their place", "%v", err)
	}
	return nil
}

// knownThen returns a checker that has seen the facts beside which those that a change adds will be: of networks all,
// of keys those of the same principals.
func (m *Monitor) knownThen(change api.FactChange) *knownfacts.Checker {
	removed := map[string]bool{}
	for _, fact := range factsFrom(change.Remove) {
		removed[fact.String()] = true
	}
	known := new(knownfacts.Checker)
	asked := map[policy.Value]bool{}
	for _, fact := range factsFrom(change.Add) {
		question := policy.Pattern{Conduit: fact.Conduit, Relation: fact.Relation, Arguments: []policy.Value{{}, {}}}
		switch {
		case knownfacts.IsRegion(fact):
		case knownfacts.IsKey(fact) && len(fact.Arguments) > 0:
			question.Arguments[0] = fact.Arguments[0]
		default:
			continue
		}
		if asked[question.Arguments[0]] {
			continue
		}
		asked[question.Arguments[0]] = true
		m.state().Lookup(question, func(standing policy.Fact) bool {
			if !removed[standing.String()] {
				// One that is in force goes on, whatever it is.
				_ = known.Check(standing.Conduit, standing.Relation, policy.NewTuple(standing.Arguments...))
			}
			return true
		})
	}
	return known
}

// undeclared returns warnings about facts whose relation no source declares.
func (m *Monitor) undeclared(added []api.Fact) (warnings []string) {
	bundle := m.currentBundle()
	if bundle == nil {
		return nil
	}
	for _, fact := range factsFrom(added) {
		if bundle.Undeclared(fact.Relation) && !knownfacts.IsRegion(fact) && !knownfacts.IsKey(fact) {
			warnings = append(warnings, fmt.Sprintf("%q says %s: no FactSource declares relation %s; if you mean it, declare "+
				"it in spec.relations of one, otherwise remove the fact", fact.Conduit, fact.Relation, fact.Relation))
		}
	}
	return warnings
}

// changeFacts changes the catalog's facts and updates everything that depends on them. An
// error means that nothing has changed. What could not follow a change that is in force is
// a warning of the result. requested is when it was asked for. Called with changing held.
//
// A change is durable first. Then the analyses are continued for the state that it makes, and
// capability sets are prepared. Only then, with binding held, all of this comes into force: a login
// waits neither for the disk nor for an analysis. What a change takes has no effect any more when
// changeFacts returns.
func (m *Monitor) changeFacts(
	ctx context.Context, requested time.Time, change func(catalog.Writer) (*catalog.Change, error),
) (result api.FactResult, err error) {
	_, err = change(m.catalog.Writer(func(done *catalog.Change, inForce func() error) error {
		result = m.enter(ctx, requested, done, inForce)
		return nil
	}))
	if err != nil {
		m.metrics.FactsChanged(false)
		return api.FactResult{}, api.Invalid("change facts", "", "%v", err)
	}
	return result, nil
}

// enter puts a change of facts in force that is durable.
func (m *Monitor) enter(ctx context.Context, requested time.Time, done *catalog.Change,
	inForce func() error) api.FactResult {
	m.metrics.FactsChanged(true)
	begun := time.Now()
	defer m.outdate()()
	m.recordFacts(done)
	result := api.FactResult{Removed: len(done.Removed), Added: len(done.Added)}
	var steps []*step
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		if s := m.follow(ctx, name, done); s != nil {
			steps = append(steps, s)
		}
	}
	ending, failures := m.takeEffect(done, inForce, steps, &result)
	ending.Wait()
	m.settle()
	if result.SessionsReset > 0 {
		m.metrics.Revocation.Observe(time.Since(requested).Seconds())
	}
	took := time.Since(begun)
	m.metrics.FactChange.Observe(took.Seconds())
	result.DurationMicroseconds = took.Microseconds()
	for _, failure := range failures {
		if failure != nil {
			m.logger.Warn("facts have changed, with a problem", "error", failure)
			result.Warnings = append(result.Warnings, failure.Error())
		}
	}
	return result
}

// takeEffect makes the one step of a change for which logins wait.
func (m *Monitor) takeEffect(done *catalog.Change, inForce func() error, steps []*step,
	result *api.FactResult) (ending pipeline.Ending, failures []error) {
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	failures = append(failures, inForce())
	moved := m.services.RefreshRegions()
	for _, p := range m.pipelines {
		p.Follow(done)
		result.SessionsReset += p.EndOutdated(done, time.Now())
		if moved {
			result.SessionsReset += p.EndMoved()
		}
	}
	// If one pipeline fails, the capability sets of the others must still be updated.
	for _, s := range steps {
		ended, err := m.putInForce(s)
		ending = append(ending, ended...)
		failures = append(failures, err)
		result.Instances += s.affected
		result.SessionsReset += len(ended)
	}
	return ending, failures
}

// outdate says that no capability set reflects a change, until the function that it returns is
// called. Called with changing held.
func (m *Monitor) outdate() (updated func()) {
	var all []func()
	for _, p := range m.pipelines {
		all = append(all, p.Outdate())
	}
	return func() {
		for _, updated := range all {
			updated()
		}
	}
}

func factsFrom(facts []api.Fact) []policy.Fact {
	list := make([]policy.Fact, len(facts))
	for i, fact := range facts {
		list[i] = policy.Fact{Conduit: fact.Conduit, Relation: fact.Says, Arguments: fact.Tuple.Values()}
	}
	return list
}

// recordFacts records the facts that a change has really removed and added.
func (m *Monitor) recordFacts(change *catalog.Change) {
	for _, fact := range change.Removed {
		m.recordFact("remove", fact)
	}
	for _, fact := range change.Added {
		m.recordFact("add", fact)
	}
}

func (m *Monitor) recordFact(what string, fact policy.Fact) {
	m.record(audit.Event{
		Kind: audit.Fact, Operation: what, Allowed: true, Conduit: fact.Conduit,
		Facts: []string{fact.String()},
	})
}
