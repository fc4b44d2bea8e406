// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
	"shai.dev/monitor/policy"
)

// ChangeFacts implements [api.Service]. For sessions that begin, the change of the state
// and of the capability sets is one step: binding waits in the meantime.
func (m *Monitor) ChangeFacts(ctx context.Context, change api.FactChange) (api.FactResult, error) {
	requested := time.Now()
	m.changing.Lock()
	defer m.changing.Unlock()
	if err := m.checkDeclared(change.Add); err != nil {
		m.metrics.FactsChanged(false)
		return api.FactResult{}, err
	}
	return m.changeFacts(ctx, requested, func() (*catalog.Change, error) {
		return m.catalog.ChangeFacts(factsFrom(change.Remove), factsFrom(change.Add))
	})
}

// checkDeclared refuses facts that contradict what a FactSource declares about their relation. All of
// them are named.
func (m *Monitor) checkDeclared(added []api.Fact) error {
	bundle := m.currentBundle()
	if bundle == nil {
		return nil
	}
	var wrong []error
	for _, fact := range added {
		wrong = append(wrong, bundle.CheckFact(fact.Conduit, fact.Says, fact.Tuple))
	}
	if err := errors.Join(wrong...); err != nil {
		return api.Invalid("change facts", "correct the facts, or the declaration in spec.relations", "%v", err)
	}
	return nil
}

// changeFacts changes the catalog's facts and updates everything that depends on them. An
// error means that nothing has changed. What could not follow a change that is in force is
// a warning of the result. requested is when it was asked for. Called with changing held.
func (m *Monitor) changeFacts(
	ctx context.Context, requested time.Time, change func() (*catalog.Change, error),
) (api.FactResult, error) {
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	done, err := change()
	if err != nil && !errors.Is(err, catalog.ErrView) {
		m.metrics.FactsChanged(false)
		return api.FactResult{}, api.Invalid("change facts", "", "%v", err)
	}
	m.metrics.FactsChanged(true)
	begun := time.Now()
	defer m.outdate()()
	result := api.FactResult{Removed: len(done.Removed), Added: len(done.Added)}
	m.recordFacts(done)
	moved := m.services.RefreshRegions()
	for _, p := range m.pipelines {
		p.Follow(done)
		result.SessionsReset += p.EndOutdated(done, time.Now())
		if moved {
			result.SessionsReset += p.EndMoved()
		}
	}
	// If one pipeline fails, the capability sets of the others must still be updated.
	failures := []error{err}
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		affected, reset, err := m.follow(ctx, name, done)
		failures = append(failures, err)
		result.Instances += affected
		result.SessionsReset += reset
	}
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
	return result, nil
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

// decidedWithin limits the decisions, roughly, with which one step looks for accesses that a change
// gives: logins and other changes wait for it. The monitor decides on the others when they
// happen, until watchPending has found them. What a change takes is never left.
const decidedWithin = 256

// follow updates a pipeline's analysis and capability sets after a change of the
// catalog. Called with changing and binding held.
func (m *Monitor) follow(ctx context.Context, name string, change *catalog.Change) (affected, reset int, err error) {
	return m.advance(name, func(result *analysis.Result) (*analysis.Result, []analysis.Affected, error) {
		return result.Update(ctx, change, analysis.Options{Now: time.Now(), Limit: decidedWithin})
	})
}

// advance replaces a pipeline's analysis by its next one and updates the capability sets.
// If this fails, the pipeline is left without capability sets, and the monitor decides on
// accesses when they happen. Called with changing and binding held.
func (m *Monitor) advance(name string, step func(*analysis.Result) (*analysis.Result, []analysis.Affected,
	error)) (affected, reset int, err error) {
	p, known := m.pipelines[name], m.analyses[name]
	if p == nil || known == nil || known.result == nil {
		return 0, 0, nil
	}
	if known.plan != p.Plan() {
		m.setAnalysis(name, &analyzed{plan: known.plan, report: known.report}) // of the pipeline as it was before
		return 0, p.Abandon(), nil
	}
	next, touched, err := step(known.result)
	if err != nil {
		m.setAnalysis(name, &analyzed{plan: known.plan, report: known.report})
		return 0, p.Abandon(), fmt.Errorf("update the analysis of pipeline %s: %w; run shai analyze", name, err)
	}
	return m.putInForce(name, next, touched)
}

// putInForce puts the next result of a pipeline's analysis in force, and what it has changed.
// Called with changing and binding held.
func (m *Monitor) putInForce(name string, next *analysis.Result, touched []analysis.Affected) (affected, reset int,
	err error) {
	known := m.analyses[name]
	m.setAnalysis(name, &analyzed{plan: known.plan, result: next, report: known.report})
	if reset, err = m.pipelines[name].Replace(touched); err != nil {
		return len(touched), reset, err
	}
	m.rescheduleExpiry()
	m.resume(next)
	m.unstored.add(name)
	return len(touched), reset, nil
}

func (m *Monitor) setAnalysis(name string, known *analyzed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.analyses[name] = known
}

// settle ends a change of bundles, facts or analyses: it returns when no session is bound by
// what was before. The caller holds changing and binding, so that no instance is about to
// get a key-value user.
func (m *Monitor) settle() {
	for _, p := range m.pipelines {
		settle(p)
	}
}

func settle(p *pipeline.Pipeline) {
	p.Fence()
	p.RetireUsers()
}
