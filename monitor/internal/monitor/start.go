// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/pipeline"
)

// startTask starts a task of a pipeline, and before it every task that it needs. Called
// with changing held.
func (m *Monitor) startTask(ctx context.Context, p *pipeline.Pipeline,
	start func(*pipeline.Task, context.Context) error, name string) error {
	if err := m.installStored(ctx, p); err != nil {
		return err
	}
	return start(p.Task(name), ctx)
}

// starting returns what starts a task as the run of this identity, "" for a new one.
func starting(identity string) func(*pipeline.Task, context.Context) error {
	return func(t *pipeline.Task, ctx context.Context) error { return t.Start(ctx, identity) }
}

// installStored prepares the capability sets of an analysis that was loaded when the
// monitor started. The key-value store is certain to run only now.
func (m *Monitor) installStored(ctx context.Context, p *pipeline.Pipeline) error {
	m.mu.RLock()
	known := m.analyses[p.Name()]
	m.mu.RUnlock()
	if p.HasSets() || known == nil || known.result == nil || known.plan != p.Plan() ||
		!known.result.Current(m.state()) {
		return nil
	}
	// Some accesses may have expired since the analysis was stored.
	result, _, err := known.result.Expire(ctx, analysis.Options{Now: time.Now()})
	if err != nil {
		return fmt.Errorf("bring the stored analysis of pipeline %s up to date: %w; run shai analyze", p.Name(), err)
	}
	m.setAnalysis(p.Name(), &analyzed{plan: known.plan, result: result, report: known.report})
	sets, err := p.PrepareSets(ctx, result, nil, func(uint64, uint64) {})
	if err != nil {
		return err
	}
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	p.PutSets(sets)
	return nil
}
