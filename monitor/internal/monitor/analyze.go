// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/sandbox"
	"shai.dev/monitor/internal/wire"
)

// maxBlockedShown bounds the blocked flows in an answer.
const maxBlockedShown = 100

// analysed is a pipeline's plan and, once it has run, the analysis in force. It is
// immutable: readers hold the monitor's mu only while they fetch it.
type analysed struct {
	plan   *analysis.Plan
	result *analysis.Result // nil before the first run
	report api.Analysis     // of the last full run
}

func (m *Monitor) analysisPath(pipeline string) string {
	return filepath.Join(m.options.State, "analysis-"+pipeline)
}

// Analyze implements [api.Service].
func (m *Monitor) Analyze(ctx context.Context, request api.AnalyzeRequest, progress func(api.Progress)) (api.Analysis, error) {
	p, err := m.pipeline("analyse", request.Pipeline)
	if err != nil {
		return api.Analysis{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	return m.analyze(ctx, p, progress)
}

// analyze runs the analysis and puts its result in force. Called with changing held.
func (m *Monitor) analyze(ctx context.Context, p *pipeline, progress func(api.Progress)) (api.Analysis, error) {
	begun := time.Now()
	if err := m.remember(p); err != nil {
		return api.Analysis{}, err
	}
	options := analysis.Options{Now: begun, Progress: func(done, total uint64) {
		progress(api.Progress{Phase: "instances", Done: done, Total: total})
	}}
	result, err := analysis.Run(ctx, p.plan, m.state(), options)
	if err != nil {
		return api.Analysis{}, fmt.Errorf("analyse pipeline %s: %w", p.name, err)
	}
	took := time.Since(begun)
	if err := result.Save(m.analysisPath(p.name)); err != nil {
		return api.Analysis{}, err
	}
	if err := p.install(ctx, result, progress); err != nil {
		return api.Analysis{}, err
	}
	report := reportOf(p, result, m.state().Bundle().Version, begun, took)
	m.setAnalysis(p.name, &analysed{plan: p.plan, result: result, report: report})
	m.rescheduleExpiry()
	m.record(audit.Event{Kind: audit.Analysis, Pipeline: p.name, Operation: "analyse", Allowed: true,
		Reason: fmt.Sprintf("%d instances in %v", report.Instances, took.Round(time.Microsecond))})
	return report, nil
}

// remember puts the instances that have been seen into the plan. They stay in the
// catalog: whoever came once from elsewhere is expected there from then on. Called
// with changing held.
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

// hasAll says whether values has a value for every parameter: a prediction may be
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
	return api.Analysis{}, api.NotFound("latest analysis", "run shai analyze", "pipeline %s has not been analysed", p.name)
}

// install prepares the capability set of every instance that was analysed and puts
// them all in force at once.
func (p *pipeline) install(ctx context.Context, result *analysis.Result, progress func(api.Progress)) error {
	if p.currentMode() == wire.ModeBaseline {
		return nil
	}
	if err := p.openKeyValue(ctx); err != nil {
		return err
	}
	sets := map[string]*capabilitySet{}
	instances := result.Instances()
	for i, found := range instances {
		task := p.tasks[found.Instance.Task]
		if len(task.spec.Parameters) == 0 {
			continue
		}
		holds, err := p.prepareAnalysed(task, found)
		if err != nil {
			return err
		}
		sets[holds.subject.instance] = holds
		if i%64 == 0 {
			progress(api.Progress{Phase: "capability sets", Done: uint64(i), Total: uint64(len(instances))})
		}
	}
	progress(api.Progress{Phase: "capability sets", Done: uint64(len(instances)), Total: uint64(len(instances))})
	p.mu.Lock()
	defer p.mu.Unlock()
	// Sessions that begin in this moment may still hold the sets that go; their
	// descriptors are closed when nobody refers to them any more.
	p.sets = sets
	return nil
}

// prepareAnalysed builds the capability set of an instance that was analysed.
func (p *pipeline) prepareAnalysed(task *runningTask, found *analysis.Capabilities) (*capabilitySet, error) {
	values := map[string]string{}
	for i, parameter := range task.spec.Parameters {
		values[parameter] = found.Instance.Arguments[i]
	}
	return p.prepare(task, values, found, true)
}

// documentClasses leaves the classes whose conduits the view links.
func (p *pipeline) documentClasses(classes []uint32) []uint32 {
	state := p.monitor.state()
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

// readableView is the part of the view that a task without parameters may read, class
// by class even where that is all of it: a class that appears while the task runs
// was not decided on, and Landlock cannot take back what it granted. That the task can
// list the view tells it numbers of classes and conduits.
func (t *runningTask) readableView() ([]sandbox.Directory, error) {
	p, m := t.pipeline, t.pipeline.monitor
	found, err := analysis.RunInstance(p.plan, m.state(), analysis.Instance{Task: t.name}, time.Now())
	if err != nil {
		return nil, fmt.Errorf("analyse task %s: %w", t.name, err)
	}
	readable := p.documentClasses(found.Reads)
	if len(readable) == 0 {
		return nil, nil
	}
	if err := m.view.EnsureClassDirectories(readable); err != nil {
		return nil, err
	}
	list := []sandbox.Directory{{Path: m.view.Path(), Rights: sandbox.List}}
	for _, class := range readable {
		list = append(list, sandbox.Directory{Path: m.view.ClassDirectory(class), Rights: sandbox.Read})
	}
	return list, nil
}

// loadAnalysis takes up a stored result that still fits the state; its capability
// sets are prepared when the first task starts. Without one every access is decided
// as it happens, until the next run.
func (m *Monitor) loadAnalysis(p *pipeline) error {
	if err := m.remember(p); err != nil {
		return err
	}
	result, err := analysis.Load(m.analysisPath(p.name), p.plan, m.state())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, analysis.ErrStale) {
		return nil
	}
	if err != nil {
		return err
	}
	report := reportOf(p, result, m.state().Bundle().Version, result.Analysed, 0)
	m.setAnalysis(p.name, &analysed{plan: p.plan, result: result, report: report})
	m.rescheduleExpiry()
	return nil
}

// reportOf is the analysis' report as the API shows it.
func reportOf(p *pipeline, result *analysis.Result, bundle uint64, started time.Time, took time.Duration) api.Analysis {
	found := result.Report(started)
	out := api.Analysis{
		Pipeline: p.name, Bundle: bundle, Started: started, DurationMicroseconds: took.Microseconds(),
		Conduits: found.Conduits, Classes: found.Classes, Instances: found.Instances,
		BlockedTotal: found.BlockedTotal, Text: found.Text(), Mermaid: found.Mermaid(),
	}
	for _, c := range found.Coverage {
		out.Coverage = append(out.Coverage, api.Coverage(c))
	}
	for _, b := range found.Blocked[:min(len(found.Blocked), maxBlockedShown)] {
		out.Blocked = append(out.Blocked, api.BlockedFlow{
			Instance: b.Instance, Access: b.Access, Conduit: b.Conduit, Count: b.Count,
			Policy: b.Policy, Obligation: b.Obligation, Suggestion: b.Suggestion,
		})
	}
	return out
}
