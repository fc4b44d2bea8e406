// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/monitor/api"
)

// Apply implements [api.Service].
func (m *Monitor) Apply(ctx context.Context, request api.ApplyRequest) (api.ApplyResult, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	previous := m.currentBundle()
	set := manifest.Parse(request.Sources...)
	if !request.Prune {
		set = set.Over(previous)
	}
	bundle, err := set.Bundle()
	if err != nil {
		return api.ApplyResult{}, err
	}
	resolved, err := m.resolve(bundle)
	if err != nil {
		return api.ApplyResult{}, err
	}
	result := api.ApplyResult{DryRun: request.DryRun, Version: m.state().Bundle().Version}
	for _, change := range bundle.Changes(previous) {
		result.Objects = append(result.Objects, api.ObjectChange{Kind: change.Kind, Name: change.Name, Change: change.What})
	}
	if err := m.feasible(resolved); err != nil {
		return api.ApplyResult{}, err
	}
	next, err := catalogBundle(bundle, m.options.Data)
	if err != nil {
		return api.ApplyResult{}, api.Invalid("apply", "", "%v", err)
	}
	if result.Hash = next.Hash; request.DryRun {
		return result, nil
	}
	if err := m.enforce(ctx, bundle, resolved, next); err != nil {
		return api.ApplyResult{}, err
	}
	inForce := m.state().Bundle()
	result.Version, result.Hash = inForce.Version, inForce.Hash
	return result, nil
}

func (m *Monitor) currentBundle() *manifest.Bundle {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.bundle
}

// resolve replaces the variables of every pipeline.
func (m *Monitor) resolve(bundle *manifest.Bundle) (map[string]*manifest.Resolved, error) {
	resolved := map[string]*manifest.Resolved{}
	var failures manifest.Errors
	for _, p := range bundle.Pipelines() {
		one, err := bundle.Resolve(p.Metadata.Name, m.options.Define)
		var found manifest.Errors
		if errors.As(err, &found) {
			failures = append(failures, found...)
			continue
		}
		if err != nil {
			return nil, err
		}
		resolved[p.Metadata.Name] = one
	}
	if len(failures) > 0 {
		return nil, failures
	}
	return resolved, nil
}

// feasible finds what would fail only after the bundle is in force.
func (m *Monitor) feasible(resolved map[string]*manifest.Resolved) error {
	if _, err := os.Stat(m.options.Data); err != nil {
		return api.Unavailable("apply", "make the directory that --data names available again", "data directory: %v", err)
	}
	for name, one := range resolved {
		if err := checkDirectories(one.Pipeline.Spec); err != nil {
			return api.Invalid("apply pipeline "+name, "", "%v", err)
		}
		for _, task := range one.Tasks {
			if _, err := layout(one.Pipeline.Spec, task.Metadata.Name, task.Spec); err != nil {
				return api.Invalid("apply pipeline "+name, "", "%v", err)
			}
		}
	}
	return nil
}

// enforce makes the bundle durable, links new documents, and rebuilds the pipelines
// that it changed. What was acknowledged is the bundle in the catalog: should
// anything after that fail, starting the monitor again continues from there.
func (m *Monitor) enforce(ctx context.Context, bundle *manifest.Bundle, resolved map[string]*manifest.Resolved, next catalog.Bundle) error {
	if err := m.replaceBundle(next); err != nil {
		return api.Invalid("apply", "", "%v", err)
	}
	if _, _, err := m.catalog.RegisterFiles(ctx, m.options.Data, nil); err != nil && !errors.Is(err, catalog.ErrView) {
		return fmt.Errorf("apply: %w", err)
	}
	if _, err := m.view.Verify(ctx, nil); err != nil {
		return fmt.Errorf("apply: link documents: %w", err)
	}
	m.refreshRegions()
	m.record(audit.Event{Kind: audit.Bundle, Operation: "apply", Allowed: true,
		Reason: fmt.Sprintf("version %d, %s", m.state().Bundle().Version, m.state().BundleHash())})
	if err := m.rebuild(ctx, bundle, resolved); err != nil {
		return err
	}
	return m.analyzeAgain(ctx)
}

// replaceBundle makes the bundle durable. Capability sets of another bundle are
// dropped in the same step: until the analysis has run again, accesses are decided
// as they happen.
func (m *Monitor) replaceBundle(next catalog.Bundle) error {
	m.binding.Lock()
	defer m.binding.Unlock()
	change, err := m.catalog.Apply(next)
	if err != nil && !errors.Is(err, catalog.ErrView) {
		return err
	}
	if change.Bundle {
		for _, p := range m.pipelines {
			p.dropSets()
		}
	}
	return nil
}

// analyzeAgain repeats the analysis of every pipeline that has one, where the state
// has moved on.
func (m *Monitor) analyzeAgain(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		known, p := m.analyses[name], m.pipelines[name]
		if p == nil {
			m.mu.Lock()
			delete(m.analyses, name)
			m.mu.Unlock()
			continue
		}
		if known.result != nil && known.result.Current(m.state()) && known.plan == p.plan {
			continue
		}
		if _, err := m.analyze(ctx, p, func(api.Progress) {}); err != nil {
			return err
		}
	}
	return nil
}

// rebuild makes the running pipelines those of the bundle. A pipeline that the
// bundle changes is stopped and made anew; tasks that ran are started again.
func (m *Monitor) rebuild(ctx context.Context, bundle *manifest.Bundle, resolved map[string]*manifest.Resolved) error {
	m.mu.Lock()
	old := m.pipelines
	m.mu.Unlock()
	next, err := m.renew(old, resolved)
	if err != nil {
		return err
	}
	restart := map[string][]string{}
	for name, running := range old {
		if next[name] == running {
			continue
		}
		if next[name] != nil {
			restart[name] = running.runningTasks()
		}
		running.shutdown(ctx)
	}
	m.mu.Lock()
	m.pipelines, m.bundle, m.applied = next, bundle, time.Now()
	m.mu.Unlock()
	for name, tasks := range restart {
		for _, task := range tasks {
			if err := next[name].startTask(ctx, task); err != nil {
				return api.Conflict("restart task "+name+"/"+task, "", "%v", err)
			}
		}
	}
	return nil
}

// renew is the pipelines of the bundle: those that it leaves as they are, and new ones
// for the others. On an error the old ones run on untouched.
func (m *Monitor) renew(old map[string]*pipeline, resolved map[string]*manifest.Resolved) (map[string]*pipeline, error) {
	next := map[string]*pipeline{}
	for name, one := range resolved {
		if running := old[name]; running != nil && running.same(one) {
			next[name] = running
			continue
		}
		made, err := newPipeline(m, one)
		if err != nil {
			for name, made := range next {
				if made != old[name] {
					made.closeConduits()
				}
			}
			return nil, api.Invalid("apply pipeline "+name, "", "%v", err)
		}
		next[name] = made
	}
	return next, nil
}

func (m *Monitor) refreshRegions() {
	table := newRegionTable(m.state())
	m.regions.Store(&table)
}

// record writes an audit record that belongs to no pipeline.
func (m *Monitor) record(event audit.Event) {
	if err := m.audit.Append(event); err != nil {
		m.metrics.auditFailures.Inc()
		m.logger.Error("audit record is lost", "kind", event.Kind, "error", err)
	}
}
