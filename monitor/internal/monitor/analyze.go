// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// analyzed is a pipeline's plan and, once the analysis has run, the result in force. It
// is immutable: readers hold the monitor's mu only while they fetch it.
type analyzed struct {
	plan   *analysis.Plan
	result *analysis.Result // nil before the first run
	report api.Analysis     // of the last full run
}

// analysisRuns is what is known about the runs of a pipeline's analysis. It lasts while the pipeline's
// manifests change: they do not correct what a run has failed for.
type analysisRuns struct {
	last                    api.AnalysisRun
	failedAll, failedActive bool // the last run of a scope that was not cancelled failed
}

// ran notes a run of the analysis. A cancelled one says nothing of what is wrong, or was; and what is
// wrong with all instances may have nothing to do with those of open sessions.
func (m *Monitor) ran(name string, run api.AnalysisRun, result string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.runs[name]
	if known == nil {
		known = &analysisRuns{}
		m.runs[name] = known
	}
	known.last = run
	switch {
	case result == metrics.Cancelled:
	case run.Scope == api.ScopeActive:
		known.failedActive = result == metrics.Failed
	case result == metrics.Failed:
		known.failedAll = true
	default:
		known.failedAll, known.failedActive = false, false
	}
}

// forgetRuns forgets those of a pipeline that is removed.
func (m *Monitor) forgetRuns(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, name)
}

// failing reports whether a run has failed and none of as large a scope has succeeded since.
func (r *analysisRuns) failing() bool { return r.failedAll || r.failedActive }

// Analyze implements [api.Service].
func (m *Monitor) Analyze(ctx context.Context, request api.AnalyzeRequest, progress func(api.Progress)) (api.Analysis,
	error) {
	if _, err := m.pipeline("analyze", request.Pipeline); err != nil { // of an unknown one nobody waits
		return api.Analysis{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	p, err := m.pipeline("analyze", request.Pipeline) // again: what was going on may have closed it
	if err != nil {
		return api.Analysis{}, err
	}
	request.Scope = cmp.Or(request.Scope, api.ScopeAll)
	return m.analyze(ctx, p, request, progress)
}

// analyze runs the analysis and puts its result in force. If the run fails, or if ctx
// ends, only the reported status changes. Called with changing held.
func (m *Monitor) analyze(ctx context.Context, p *pipeline.Pipeline, request api.AnalyzeRequest,
	progress func(api.Progress)) (api.Analysis, error) {
	begun := time.Now()
	report, err := m.runAnalysis(ctx, p, request, begun, progress)
	m.book(ctx, p, "analyze", request.Scope, begun, report, err)
	return report, err
}

// book counts and records how a run, or the import of one, has ended.
func (m *Monitor) book(ctx context.Context, p *pipeline.Pipeline, operation, scope string, begun time.Time,
	report api.Analysis, err error) {
	inForce := m.state().Bundle()
	run := api.AnalysisRun{Bundle: inForce.Version, Hash: inForce.Hash, Scope: scope, Started: begun,
		Succeeded: err == nil}
	event := audit.Event{Kind: audit.Analysis, Pipeline: p.Name(), Operation: operation, Allowed: err == nil,
		Reason: fmt.Sprintf("instances: %d, in %v", report.Instances, time.Since(begun).Round(time.Microsecond))}
	result := metrics.Succeeded
	if err != nil {
		run.Message, event.Reason, result = err.Error(), err.Error(), metrics.Failed
	}
	if err != nil && ctx.Err() != nil {
		result = metrics.Cancelled
	}
	p.Counts().AnalysisEnded(result)
	m.ran(p.Name(), run, result)
	m.record(event)
}

func (m *Monitor) runAnalysis(ctx context.Context, p *pipeline.Pipeline, request api.AnalyzeRequest, begun time.Time,
	progress func(api.Progress)) (api.Analysis, error) {
	if err := p.Remember(); err != nil {
		return api.Analysis{}, err
	}
	options := analysis.Options{Now: begun, Progress: func(done, total uint64) {
		progress(api.Progress{Phase: "instances", Done: done, Total: total})
	}}
	if known := m.analyses[p.Name()]; known != nil && known.plan == p.Plan() {
		options.Earlier = known.result
	}
	plan := p.Plan()
	if request.Scope != api.ScopeActive {
		return m.putAnalysis(ctx, p, request.Scope, nil, begun, progress,
			func(state *catalog.State) (*analysis.Result, error) { return analysis.Run(ctx, plan, state, options) })
	}
	var earlier *analysis.Result
	if !request.Full {
		earlier = options.Earlier
	}
	active := p.ActiveInstances()
	return m.putAnalysis(ctx, p, request.Scope, earlier, begun, progress,
		func(state *catalog.State) (*analysis.Result, error) {
			return analysis.RunActive(ctx, plan, state, active, earlier, options)
		})
}

// computed is a result, and what is made of it before it comes into force.
type computed struct {
	result *analysis.Result
	sets   pipeline.Sets
	report api.Analysis
}

// putAnalysis stores the result of a computation on a state, and puts it in force. Documents that
// come and go meanwhile do not wait: the result follows them as one in force does. If an access of the
// result rests on one that has gone, it is computed again, and then they wait.
func (m *Monitor) putAnalysis(ctx context.Context, p *pipeline.Pipeline, scope string, earlier *analysis.Result,
	begun time.Time, progress func(api.Progress),
	compute func(*catalog.State) (*analysis.Result, error)) (api.Analysis, error) {
	name, state := p.Name(), m.state()
	var found computed
	var err error
	meanwhile := m.changing.besideDocuments(func() {
		found, err = m.compute(ctx, p, state, scope, earlier, begun, progress, compute)
	})
	if err != nil {
		return api.Analysis{}, err
	}
	result := found.result
	for _, change := range meanwhile {
		if result.RestsOn(change) {
			p.Discard(found.sets)
			if found, err = m.compute(ctx, p, m.state(), scope, earlier, begun, progress, compute); err != nil {
				return api.Analysis{}, err
			}
			result = found.result
			break
		}
		result = m.postponed.follow(name, result, change)
	}
	m.services.Binding.Lock()
	p.PutSets(found.sets)
	settle(p)
	m.services.Binding.Unlock()
	m.setAnalysis(name, &analyzed{plan: p.Plan(), result: result, report: found.report})
	if result != found.result {
		m.unstored.add(name)
	}
	m.rescheduleExpiry()
	return found.report, nil
}

// compute computes a result, makes its capability sets, and stores it.
func (m *Monitor) compute(ctx context.Context, p *pipeline.Pipeline, state *catalog.State, scope string,
	earlier *analysis.Result, begun time.Time, progress func(api.Progress),
	run func(*catalog.State) (*analysis.Result, error)) (found computed, err error) {
	if found.result, err = run(state); err != nil {
		return computed{}, err
	}
	took := time.Since(begun)
	found.sets, err = p.PrepareSets(ctx, found.result, earlier, func(done, total uint64) {
		progress(api.Progress{Phase: "capability sets", Done: done, Total: total})
	})
	if err != nil {
		return computed{}, err
	}
	if err := storeAnalysis(m.analysisPath(p.Name()), found.result); err != nil {
		p.Discard(found.sets)
		return computed{}, err
	}
	found.report = api.AnalysisOf(p.Name(), found.result.Report(begun), state.Bundle().Version, begun, took)
	found.report.Scope = scope
	return found, nil
}

// LatestAnalysis implements [api.Service].
func (m *Monitor) LatestAnalysis(_ context.Context, name string) (api.Analysis, error) {
	p, err := m.pipeline("latest analysis", name)
	if err != nil {
		return api.Analysis{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if known := m.analyses[p.Name()]; known != nil && known.result != nil {
		return known.report, nil
	}
	return api.Analysis{}, notAnalyzed("latest analysis", p.Name())
}

func notAnalyzed(title, pipeline string) error {
	return api.NotFound(title, "run shai analyze", "pipeline %s has not been analysed", pipeline)
}

// loadAnalysis loads a stored result if it still fits the state. Its capability sets are
// prepared when the first task starts. Without a result, the monitor decides on every
// access when it happens, until the next run.
func (m *Monitor) loadAnalysis(p *pipeline.Pipeline) error {
	if err := p.Remember(); err != nil {
		return err
	}
	result, overtaken, err := storedAnalysis(m.analysisPath(p.Name()), p.Plan(), m.state())
	if overtaken {
		m.overtaken[p.Name()] = true
	}
	if result == nil || err != nil {
		return err
	}
	report := api.AnalysisOf(p.Name(), result.Report(result.Analyzed), m.state().Bundle().Version, result.Analyzed, 0)
	m.setAnalysis(p.Name(), &analyzed{plan: p.Plan(), result: result, report: report})
	m.rescheduleExpiry()
	return nil
}
