// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pipeline"
)

// step is the next result of a pipeline's analysis, ready to come into force: logins wait while it
// does so, and not while it is made.
type step struct {
	name     string // of the pipeline
	known    *analyzed
	next     *analysis.Result // nil: the pipeline is left without an analysis
	sets     *pipeline.Replacement
	affected int
	err      error // why there is none
}

// decidedWithin limits the decisions, roughly, with which one step looks for accesses that a change
// gives: who makes the change, and other changes, wait for it. The monitor decides on the others
// when they happen, until watchPending has found them. What a change takes is never left.
const decidedWithin = 256

// follow makes the step of a pipeline's analysis after a change of the catalog, which need not be in
// force yet. Called with changing held.
func (m *Monitor) follow(ctx context.Context, name string, change *catalog.Change) *step {
	return m.prepare(name, change.After, func(r *analysis.Result) (*analysis.Result, []analysis.Affected, error) {
		return r.Update(ctx, change, analysis.Options{Now: time.Now(), Limit: decidedWithin})
	})
}

// prepare makes a step to a state, nil if the pipeline has no analysis in force. If it cannot be
// made, the step is that the pipeline has no capability sets, and the monitor decides on accesses
// when they happen. Called with changing held.
func (m *Monitor) prepare(name string, state *catalog.State, advance func(*analysis.Result) (*analysis.Result,
	[]analysis.Affected, error)) *step {
	p, known := m.pipelines[name], m.analyses[name]
	if p == nil || known == nil || known.result == nil {
		return nil
	}
	s := &step{name: name, known: known}
	if known.plan != p.Plan() {
		return s // it is of the pipeline as it was before
	}
	next, affected, err := advance(known.result)
	if err != nil {
		s.err = fmt.Errorf("update the analysis of pipeline %s: %w; run shai analyze", name, err)
		return s
	}
	s.next, s.affected, s.sets = next, len(affected), p.Prepare(state, affected)
	return s
}

// putInForce puts a step in force, which may be nil. It returns the sessions that are ending, as
// [pipeline.Pipeline.Replace] does. Called with changing and binding held.
func (m *Monitor) putInForce(s *step) (pipeline.Ending, error) {
	if s == nil {
		return nil, nil
	}
	p := m.pipelines[s.name]
	m.setAnalysis(s.name, &analyzed{plan: s.known.plan, result: s.next, report: s.known.report})
	if s.next == nil {
		return p.Abandon(), s.err
	}
	ending, err := p.Replace(s.sets)
	if err != nil {
		return ending, err
	}
	m.rescheduleExpiry()
	m.resume(s.next)
	m.unstored.add(s.name)
	return ending, nil
}

// enterAlone puts a step in force that changes nothing else. Called with changing held.
func (m *Monitor) enterAlone(s *step) error {
	m.services.Binding.Lock()
	ending, err := m.putInForce(s)
	m.services.Binding.Unlock()
	ending.Wait()
	return err
}

func (m *Monitor) setAnalysis(name string, known *analyzed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.analyses[name] = known
}

// settle ends a change of facts or analyses: it returns when no session is bound by what was
// before. Called with changing held, and without binding.
func (m *Monitor) settle() {
	for _, p := range m.pipelines {
		m.settleOne(p)
	}
}

func (m *Monitor) settleOne(p *pipeline.Pipeline) {
	p.Fence()
	if p.HasUnneededUsers() {
		m.services.Binding.Lock()
		defer m.services.Binding.Unlock()
		p.RetireUsers()
	}
}

// settle does the same for one pipeline. The caller holds changing and binding.
func settle(p *pipeline.Pipeline) {
	p.Fence()
	p.RetireUsers()
}
