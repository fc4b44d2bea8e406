// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox/plan"
	"shai.dev/monitor/internal/wire"
)

// analyzed is a pipeline's plan and, once the analysis has run, the result in force. It
// is immutable: readers hold the monitor's mu only while they fetch it.
type analyzed struct {
	plan   *analysis.Plan
	result *analysis.Result // nil before the first run
	report api.Analysis     // of the last full run
}

// Analyze implements [api.Service].
func (m *Monitor) Analyze(ctx context.Context, request api.AnalyzeRequest, progress func(api.Progress)) (api.Analysis,
	error) {
	p, err := m.pipeline("analyze", request.Pipeline)
	if err != nil {
		return api.Analysis{}, err
	}
	request.Scope = cmp.Or(request.Scope, api.ScopeAll)
	m.changing.Lock()
	defer m.changing.Unlock()
	return m.analyze(ctx, p, request, progress)
}

// analyze runs the analysis and puts its result in force. If the run fails, or if ctx
// ends, only the reported status changes. Called with changing held.
func (m *Monitor) analyze(ctx context.Context, p *pipeline, request api.AnalyzeRequest,
	progress func(api.Progress)) (api.Analysis, error) {
	begun := time.Now()
	report, err := m.runAnalysis(ctx, p, request, begun, progress)
	inForce := m.state().Bundle()
	run := api.AnalysisRun{Bundle: inForce.Version, Hash: inForce.Hash, Scope: request.Scope, Started: begun,
		Succeeded: err == nil}
	event := audit.Event{Kind: audit.Analysis, Pipeline: p.name, Operation: "analyze", Allowed: err == nil,
		Reason: fmt.Sprintf("instances: %d, in %v", report.Instances, time.Since(begun).Round(time.Microsecond))}
	if err != nil {
		run.Message, event.Reason = err.Error(), err.Error()
	}
	m.mu.Lock()
	m.runs[p.name] = run
	m.mu.Unlock()
	m.record(event)
	return report, err
}

func (m *Monitor) runAnalysis(ctx context.Context, p *pipeline, request api.AnalyzeRequest, begun time.Time,
	progress func(api.Progress)) (api.Analysis, error) {
	if err := m.remember(p); err != nil {
		return api.Analysis{}, err
	}
	options := analysis.Options{Now: begun, Progress: func(done, total uint64) {
		progress(api.Progress{Phase: "instances", Done: done, Total: total})
	}}
	var result, earlier *analysis.Result
	var err error
	if request.Scope == api.ScopeActive {
		if known := m.analyses[p.name]; known != nil && known.plan == p.plan && !request.Full {
			earlier = known.result
		}
		result, err = analysis.RunActive(ctx, p.plan, m.state(), p.activeInstances(), earlier, options)
	} else {
		result, err = analysis.Run(ctx, p.plan, m.state(), options)
	}
	if err != nil {
		return api.Analysis{}, err
	}
	took := time.Since(begun)
	sets, err := p.prepareSets(ctx, result, earlier, progress)
	if err != nil {
		return api.Analysis{}, err
	}
	if err := storeAnalysis(m.analysisPath(p.name), result); err != nil {
		return api.Analysis{}, err
	}
	p.putSets(sets)
	m.binding.Lock()
	p.settle()
	m.binding.Unlock()
	report := reportOf(p, result, m.state().Bundle().Version, begun, took)
	report.Scope = request.Scope
	m.setAnalysis(p.name, &analyzed{plan: p.plan, result: result, report: report})
	m.rescheduleExpiry()
	return report, nil
}

// activeInstances returns the instances with an open session.
func (p *pipeline) activeInstances() []analysis.Instance {
	var active []analysis.Instance
	for _, s := range p.live() {
		if holds := s.bound(); holds != nil {
			who := holds.subject.session
			active = append(active, instanceOf(s.task, parametersOf(who.Principal, who.Region)))
		}
	}
	return active
}

// remember puts the instances that have been seen into the plan. They stay in the
// catalog: a user who came once from another region is expected there from then on.
// Called with changing held.
func (m *Monitor) remember(p *pipeline) error {
	predictions, err := m.catalog.Predictions()
	if err != nil {
		return fmt.Errorf("analyse pipeline %s: %w", p.name, err)
	}
	p.plan.Seen = nil
	for _, prediction := range predictions {
		for _, task := range p.tasks {
			if prediction.Task == setName(p.name, task.name) && hasAll(prediction.Parameters, task.spec.Parameters) {
				p.plan.Seen = append(p.plan.Seen, instanceOf(task, prediction.Parameters))
			}
		}
	}
	return nil
}

// hasAll reports whether values has a value for every parameter. A prediction may be
// older than the task's manifest.
func hasAll(values map[string]string, parameters []string) bool {
	for _, parameter := range parameters {
		if values[parameter] == "" {
			return false
		}
	}
	return true
}

// LatestAnalysis implements [api.Service].
func (m *Monitor) LatestAnalysis(_ context.Context, name string) (api.Analysis, error) {
	p, err := m.pipeline("latest analysis", name)
	if err != nil {
		return api.Analysis{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if known := m.analyses[p.name]; known != nil && known.result != nil {
		return known.report, nil
	}
	return api.Analysis{}, api.NotFound("latest analysis", "run shai analyze", "pipeline %s has not been analysed",
		p.name)
}

// install prepares the capability set of every analysed instance and puts all sets in
// force at once.
func (p *pipeline) install(ctx context.Context, result *analysis.Result) error {
	sets, err := p.prepareSets(ctx, result, nil, func(api.Progress) {})
	if err == nil {
		p.putSets(sets)
	}
	return err
}

// prepareSets prepares the capability set of every analysed instance. If the earlier
// result said the same about an instance, its set is reused.
func (p *pipeline) prepareSets(ctx context.Context, result, earlier *analysis.Result,
	progress func(api.Progress)) (_ map[string]*capabilitySet, err error) {
	if p.currentMode() == wire.ModeBaseline {
		return nil, nil
	}
	if err := p.openKeyValue(ctx); err != nil {
		return nil, err
	}
	sets := map[string]*capabilitySet{}
	var made []*capabilitySet
	defer func() {
		if err != nil {
			for _, holds := range made {
				holds.close()
			}
		}
	}()
	instances := result.Instances()
	for i, found := range instances {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		task := p.tasks[found.Instance.Task]
		if len(task.spec.Parameters) == 0 {
			continue
		}
		if same := p.setBefore(found, earlier); same != nil {
			sets[same.subject.instance] = same
			continue
		}
		holds, err := p.prepareAnalyzed(task, found)
		if err != nil {
			return nil, err
		}
		made = append(made, holds)
		sets[holds.subject.instance] = holds
		if i%64 == 0 {
			progress(api.Progress{Phase: "capability sets", Done: uint64(i), Total: uint64(len(instances))})
		}
	}
	progress(api.Progress{Phase: "capability sets", Done: uint64(len(instances)), Total: uint64(len(instances))})
	return sets, ctx.Err()
}

// setBefore returns the set in force of an instance if the result says the same as the
// earlier one, else nil.
func (p *pipeline) setBefore(found *analysis.Capabilities, earlier *analysis.Result) *capabilitySet {
	if earlier == nil {
		return nil
	}
	if before, known := earlier.Instance(found.Instance); !known || before != found {
		return nil
	}
	if holds := p.setOf(found.Instance.Name()); holds != nil && holds.analyzed {
		return holds
	}
	return nil
}

// prepareAnalyzed builds the capability set of an analysed instance.
func (p *pipeline) prepareAnalyzed(task *runningTask, found *analysis.Capabilities) (*capabilitySet, error) {
	values := map[string]string{}
	for i, parameter := range task.spec.Parameters {
		values[parameter] = found.Instance.Arguments[i]
	}
	return p.prepare(task, values, found, true)
}

// documentClasses returns those of the classes whose conduits the view links.
func (p *pipeline) documentClasses(classes []uint32) []uint32 {
	state := p.services.state()
	linked := map[string]bool{}
	for _, set := range p.plan.Sets {
		linked[set.Catalog] = set.Ingress
	}
	var list []uint32
	for _, number := range classes {
		if class := state.Class(number); class.Class != nil && linked[class.Set] {
			list = append(list, number)
		}
	}
	return list
}

// readableView returns the part of the view that a task without parameters may read. It
// lists single classes even if the task may read all of them: a class that appears while
// the task runs has not been decided on, and Landlock cannot revoke what it has granted.
// The task can list the view, which shows it the numbers of classes and conduits.
func (t *runningTask) readableView() ([]plan.Directory, error) {
	p, services := t.pipeline, t.pipeline.services
	found, err := analysis.RunInstance(p.plan, services.state(), analysis.Instance{Task: t.name}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("analyse task %s: %w", t.name, err)
	}
	readable := p.documentClasses(found.Reads)
	if len(readable) == 0 {
		return nil, nil
	}
	if err := services.view.EnsureClassDirectories(readable); err != nil {
		return nil, err
	}
	list := []plan.Directory{{Path: services.view.Path(), Rights: plan.List}}
	for _, class := range readable {
		list = append(list, plan.Directory{Path: services.view.ClassDirectory(class), Rights: plan.Read})
	}
	return list, nil
}

// loadAnalysis loads a stored result if it still fits the state. Its capability sets are
// prepared when the first task starts. Without a result, the monitor decides on every
// access when it happens, until the next run.
func (m *Monitor) loadAnalysis(p *pipeline) error {
	if err := m.remember(p); err != nil {
		return err
	}
	result, err := storedAnalysis(m.analysisPath(p.name), p.plan, m.state())
	if result == nil || err != nil {
		return err
	}
	report := reportOf(p, result, m.state().Bundle().Version, result.Analyzed, 0)
	m.setAnalysis(p.name, &analyzed{plan: p.plan, result: result, report: report})
	m.rescheduleExpiry()
	return nil
}

// reportOf returns the analysis' report for the API.
func reportOf(p *pipeline, result *analysis.Result, bundle uint64, started time.Time, took time.Duration) api.Analysis {
	found := result.Report(started)
	out := api.Analysis{
		Scope: api.ScopeAll, Pipeline: p.name, Bundle: bundle, Started: started,
		DurationMicroseconds: took.Microseconds(),
		Conduits:             found.Conduits, Classes: found.Classes, Instances: found.Instances,
		AccessTally: api.AccessTally(found.Total),
		Accesses:    []api.Accesses{}, Warnings: []api.Warning{}, Mermaid: found.Mermaid(),
	}
	for _, a := range found.Accesses {
		out.Accesses = append(out.Accesses, api.Accesses{
			Task: a.Task, Access: a.Access, Conduits: a.Conduits, Instances: a.Instances,
			AccessTally:    api.AccessTally(a.Tally),
			RefusedBecause: causes(a.RefusedBecause), UndecidedBecause: causes(a.UndecidedBecause),
		})
	}
	for _, w := range found.Warnings {
		out.Warnings = append(out.Warnings, api.Warning(w))
	}
	return out
}

func causes(list []analysis.Cause) []api.Cause {
	var out []api.Cause
	for _, c := range list {
		out = append(out, api.Cause{
			Policy: c.Policy, Count: c.Count, Instance: c.Instance, Conduit: c.Conduit,
			Reason: c.Reason, Suggestion: c.Suggestion, Mode: string(c.Mode),
		})
	}
	return out
}
