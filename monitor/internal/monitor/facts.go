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
	"shai.dev/monitor/policy"
)

// ChangeFacts implements [api.Service]. For sessions that begin, the change of the state
// and of the capability sets is one step: binding waits in the meantime.
func (m *Monitor) ChangeFacts(ctx context.Context, change api.FactChange) (api.FactResult, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	return m.changeFacts(ctx, func() (*catalog.Change, error) {
		return m.catalog.ChangeFacts(factsFrom(change.Remove), factsFrom(change.Add))
	})
}

// changeFacts changes the catalog's facts and updates everything that depends on them. An
// error means that nothing has changed. What could not follow a change that is in force is
// a warning of the result. Called with changing held.
func (m *Monitor) changeFacts(ctx context.Context, change func() (*catalog.Change, error)) (api.FactResult, error) {
	m.binding.Lock()
	defer m.binding.Unlock()
	done, err := change()
	if err != nil && !errors.Is(err, catalog.ErrView) {
		return api.FactResult{}, api.Invalid("change facts", "", "%v", err)
	}
	begun := time.Now()
	result := api.FactResult{Removed: len(done.Removed), Added: len(done.Added)}
	for _, fact := range done.Removed {
		m.recordFact("remove", fact)
	}
	for _, fact := range done.Added {
		m.recordFact("add", fact)
	}
	m.refreshRegions()
	for _, p := range m.pipelines {
		p.dropUnforeseen()
		p.follow(done)
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
	took := time.Since(begun)
	m.metrics.factChange.Observe(took.Seconds())
	result.DurationMicroseconds = took.Microseconds()
	for _, failure := range failures {
		if failure != nil {
			m.logger.Warn("facts have changed, with a problem", "error", failure)
			result.Warnings = append(result.Warnings, failure.Error())
		}
	}
	return result, nil
}

func factsFrom(facts []api.Fact) []policy.Fact {
	list := make([]policy.Fact, len(facts))
	for i, fact := range facts {
		list[i] = policy.Fact{Conduit: fact.Conduit, Relation: fact.Says, Arguments: fact.Tuple.Values()}
	}
	return list
}

func (m *Monitor) recordFact(what string, fact policy.Fact) {
	m.record(audit.Event{
		Kind: audit.Fact, Operation: what, Allowed: true, Conduit: fact.Conduit,
		Facts: []string{fmt.Sprintf("%q says %s%s", fact.Conduit, fact.Relation, policy.NewTuple(fact.Arguments...))},
	})
}

// follow updates a pipeline's analysis and capability sets after a change of the
// catalog. Called with changing and binding held.
func (m *Monitor) follow(ctx context.Context, name string, change *catalog.Change) (affected, reset int, err error) {
	return m.advance(name, func(result *analysis.Result) (*analysis.Result, []analysis.Affected, error) {
		return result.Update(ctx, change, analysis.Options{Now: time.Now()})
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
	if known.plan != p.plan {
		m.setAnalysis(name, &analyzed{plan: known.plan, report: known.report}) // of the pipeline as it was before
		return 0, p.abandon(), nil
	}
	next, touched, err := step(known.result)
	m.setAnalysis(name, &analyzed{plan: known.plan, result: next, report: known.report})
	if err != nil {
		return 0, p.abandon(), fmt.Errorf("update the analysis of pipeline %s: %w; run shai analyze", name, err)
	}
	if p.spec.Revocation == revokeAtOnce {
		reset = p.revoke(touched)
	}
	for _, one := range touched {
		if err := p.replaceSet(one); err != nil {
			return len(touched), reset + p.abandon(), err
		}
	}
	m.rescheduleExpiry()
	return len(touched), reset, storeAnalysis(m.analysisPath(name), next)
}

func (m *Monitor) setAnalysis(name string, known *analyzed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.analyses[name] = known
}

// hasLost reports whether an instance may do less than before.
func hasLost(one analysis.Affected) bool {
	if len(one.Lost) > 0 || one.After == nil {
		return true
	}
	if one.Before == nil {
		return false
	}
	for _, class := range one.Before.Writes {
		if !slices.Contains(one.After.Writes, class) {
			return true
		}
	}
	for _, access := range one.Before.Others {
		if !slices.Contains(one.After.Others, access) {
			return true
		}
	}
	return false
}

// revokeAtOnce is the value of spec.revocation with which live sessions lose an access as
// soon as their user does.
const revokeAtOnce = "immediate"

// abandon drops the capability sets of a pipeline for which they cannot be updated. It is
// then unknown what live sessions have lost; if revocation is immediate, all are ended.
func (p *pipeline) abandon() (reset int) {
	if p.spec.Revocation != revokeAtOnce {
		p.dropSets(every, "")
		return 0
	}
	return endAll(p.live(), func() { p.dropSets(every, "it is unknown what its user may still do; connect again") })
}

// dropUnforeseen drops the sets of instances that were not analysed: no analysis updates
// them, so they are made anew when they are needed.
func (p *pipeline) dropUnforeseen() {
	p.dropSets(func(holds *capabilitySet) bool { return !holds.analyzed }, "")
}

// replaceSet updates one instance's capability set.
func (p *pipeline) replaceSet(one analysis.Affected) error {
	task := p.tasks[one.Instance.Task]
	if len(task.spec.Parameters) == 0 {
		return nil // its perimeter is decided when it starts
	}
	if one.After == nil {
		name := one.Instance.Name()
		p.dropSets(func(holds *capabilitySet) bool { return holds.subject.instance == name }, "")
		return nil
	}
	holds, err := p.prepareAnalyzed(task, one.After)
	if err == nil {
		p.putSet(holds, false)
	}
	return err
}

// revoke ends the live sessions of the instances that may do less than before, those too
// that a supervisor has not reported yet. Their clients connect again and get the new
// capability sets, which the caller puts in force.
func (p *pipeline) revoke(touched []analysis.Affected) int {
	lost := map[string]bool{}
	for _, one := range touched {
		if hasLost(one) {
			lost[one.Instance.Name()] = true
		}
	}
	if len(lost) == 0 {
		return 0
	}
	// Once for all of them: supervisors take their time to confirm what they have reported.
	return endAll(slices.DeleteFunc(p.live(), func(s *session) bool { return !lost[s.subject().instance] }), func() {
		for instance := range lost {
			p.tellRevoked(instance)
		}
	})
}

// endAll ends sessions. tell makes supervisors end theirs.
func endAll(sessions []*session, tell func()) int {
	tell()
	for _, s := range sessions {
		s.worker.Kill()
	}
	return len(sessions)
}
