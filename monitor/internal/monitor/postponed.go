// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/pipeline"
)

// postponed are classes that analyses have not decided on yet. It is safe for concurrent use.
type postponed struct {
	wake chan struct{}

	mu      sync.Mutex
	classes map[string]map[uint32]bool // by pipeline
}

func newPostponed() *postponed {
	return &postponed{wake: make(chan struct{}, 1), classes: map[string]map[uint32]bool{}}
}

// add notes the classes of a change that have documents.
func (p *postponed) add(pipeline string, change *catalog.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, class := range change.Classes {
		if change.After.Class(class).Members == 0 {
			continue // nothing can be read of it
		}
		if p.classes[pipeline] == nil {
			p.classes[pipeline] = map[uint32]bool{}
		}
		p.classes[pipeline][class] = true
	}
	select {
	case p.wake <- struct{}{}:
	default: // the last one is still pending
	}
}

// follow returns a pipeline's result on the state after a change of documents, and notes the classes
// on which it has not decided. A result that was not in force before the change, or nil, stays what
// it is.
func (p *postponed) follow(pipeline string, result *analysis.Result, change *catalog.Change) *analysis.Result {
	if result == nil || change.Before.FactsVersion() == change.After.FactsVersion() {
		return result
	}
	next, ok := result.Postpone(change)
	if !ok {
		return result
	}
	p.add(pipeline, change)
	return next
}

// take returns what was noted since the last call, by pipeline and ascending.
func (p *postponed) take() map[string][]uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := map[string][]uint32{}
	for pipeline, classes := range p.classes {
		taken[pipeline] = slices.Sorted(maps.Keys(classes))
	}
	clear(p.classes)
	return taken
}

// decidedAtOnce is the number of instances that are decided on in one step: logins wait while
// its sets come into force.
const decidedAtOnce = 64

// watchPostponed decides in the background on classes that came with new documents, until ctx
// ends.
func (m *Monitor) watchPostponed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.postponed.wake:
		}
		m.decidePostponed(ctx)
	}
}

func (m *Monitor) decidePostponed(ctx context.Context) {
	for name, classes := range m.postponed.take() {
		if err := m.decide(ctx, name, classes); err != nil && ctx.Err() == nil {
			m.logger.Error("the monitor decides on new documents when they are read", "pipeline", name, "error", err)
		}
	}
}

// decide decides on classes for the instances of a pipeline's analysis, a few at a time. Those
// with sessions come first.
func (m *Monitor) decide(ctx context.Context, name string, classes []uint32) error {
	begun, gained := time.Now(), 0
	instances, plan := m.instancesFor(name, classes)
	for some := range slices.Chunk(instances, decidedAtOnce) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		more, isOver, err := m.decideSome(ctx, name, plan, classes, some)
		if isOver || err != nil {
			return err
		}
		gained += more
	}
	if len(instances) == 0 {
		return nil
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	known := m.analyses[name]
	if known == nil || known.result == nil || known.plan != plan {
		return nil
	}
	m.record(audit.Event{Kind: audit.Analysis, Pipeline: name, Operation: "follow", Allowed: true,
		Reason: fmt.Sprintf("new classes: %d, instances: %d, of which gained: %d, in %v", len(classes), len(instances),
			gained, time.Since(begun).Round(time.Microsecond))})
	m.unstored.add(name)
	return nil
}

// instancesFor lists the instances that are expected to use one of the classes, and the plan that
// says so.
func (m *Monitor) instancesFor(name string, classes []uint32) ([]analysis.Instance, *analysis.Plan) {
	m.changing.Lock()
	defer m.changing.Unlock()
	p, known := m.pipelines[name], m.analyses[name]
	if p == nil || known == nil || known.result == nil || known.plan != p.Plan() {
		return nil, nil
	}
	isActive := map[string]bool{}
	for _, instance := range p.ActiveInstances() {
		isActive[instance.Name()] = true
	}
	uses := map[string]bool{}
	var active, others []analysis.Instance
	for _, one := range known.result.Instances() {
		task := one.Instance.Task
		if _, asked := uses[task]; !asked {
			uses[task] = known.plan.Uses(m.state(), task, classes)
		}
		switch {
		case !uses[task]:
		case isActive[one.Instance.Name()]:
			active = append(active, one.Instance)
		default:
			others = append(others, one.Instance)
		}
	}
	return append(active, others...), known.plan
}

// decideSome decides for some instances, and gives the sets that have grown to live sessions, too.
// It is over if there is another plan: its own run decides on all classes.
func (m *Monitor) decideSome(ctx context.Context, name string, plan *analysis.Plan, classes []uint32,
	instances []analysis.Instance) (gained int, isOver bool, err error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	p, known := m.pipelines[name], m.analyses[name]
	if p == nil || known == nil || known.result == nil || known.plan != plan || !known.result.Current(m.state()) {
		return 0, true, nil
	}
	s, affected := m.decided(ctx, name, classes, instances)
	if s.err != nil {
		return 0, true, s.err
	}
	m.services.Binding.Lock()
	ending, err := m.putInForce(s)
	if err == nil {
		publish(p, affected)
	}
	m.services.Binding.Unlock()
	ending.Wait()
	return len(affected), err != nil, err
}

// decided makes the step in which instances of a pipeline, which has an analysis, get access to
// classes. Called with changing held.
func (m *Monitor) decided(ctx context.Context, name string, classes []uint32,
	instances []analysis.Instance) (s *step, affected []analysis.Affected) {
	s = m.prepare(name, m.state(), func(r *analysis.Result) (next *analysis.Result, _ []analysis.Affected, err error) {
		next, affected, err = r.Decide(ctx, m.state(), classes, instances,
			analysis.Options{Now: time.Now(), Limit: decidedWithin})
		return next, affected, err
	})
	return s, affected
}

// publish gives sets that have grown to the live sessions of their instances.
func publish(p *pipeline.Pipeline, affected []analysis.Affected) {
	for _, one := range affected {
		if len(one.Gained) > 0 {
			p.Publish(analysis.Access{Instance: one.Instance, Class: one.Gained[0]})
		}
	}
}
