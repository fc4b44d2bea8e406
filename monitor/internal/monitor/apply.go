// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// maxLabel limits the length of a bundle's label in bytes.
const maxLabel = 256

// Apply implements [api.Service].
func (m *Monitor) Apply(ctx context.Context, request api.ApplyRequest) (api.ApplyResult, error) {
	if len(request.Label) > maxLabel {
		return api.ApplyResult{}, api.Invalid("apply", "shorten it", "the label has %d bytes; at most %d are allowed",
			len(request.Label), maxLabel)
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	c, err := m.candidateOf(request.Sources, request.Prune)
	if err != nil {
		return api.ApplyResult{}, err
	}
	c.catalog.Label = request.Label
	result := api.ApplyResult{
		DryRun: request.DryRun, Version: m.state().Bundle().Version, Hash: c.catalog.Hash,
		Warnings: relaxedPolicies(c.bundle),
	}
	for _, change := range c.bundle.Changes(c.previous) {
		result.Objects = append(result.Objects,
			api.ObjectChange{Kind: change.Kind, Name: change.Name, Change: change.What})
	}
	s, err := m.prepareSwap(c)
	if err != nil {
		return api.ApplyResult{}, err
	}
	if request.DryRun {
		s.discard()
		return result, nil
	}
	err = s.run(ctx)
	m.sources.turnTo(m.currentBundle(), c.catalog.Fetched)
	if err != nil {
		return api.ApplyResult{}, err
	}
	result.Warnings = slices.Concat(result.Warnings, s.unreadable, m.analyzeAgain(m.context))
	m.requestSnapshot()
	m.view.Sweep() // there may be other directories for documents
	inForce := m.state().Bundle()
	result.Version, result.Hash = inForce.Version, inForce.Hash
	return result, nil
}

// candidate is a bundle that has been read and checked but is not in force.
type candidate struct {
	previous *manifest.Bundle // nil before the first apply
	bundle   *manifest.Bundle
	resolved map[string]*manifest.Resolved
	catalog  catalog.Bundle
}

// candidateOf reads the bundle that applying the sources would put in force.
func (m *Monitor) candidateOf(sources []manifest.Source, prune bool) (*candidate, error) {
	c := &candidate{previous: m.currentBundle()}
	set := manifest.Parse(sources...)
	if !prune {
		set = set.Over(c.previous)
	}
	var err error
	if c.bundle, err = set.Bundle(); err != nil {
		return nil, err
	}
	if c.resolved, err = m.resolve(c.bundle); err != nil {
		return nil, err
	}
	if err := m.feasible(c.resolved); err != nil {
		return nil, err
	}
	if err := m.checkLogs(c); err != nil {
		return nil, err
	}
	if c.catalog, err = meaning.ForCatalog(c.bundle, m.options.Data); err != nil {
		return nil, api.Invalid("apply", "", "%v", err)
	}
	c.catalog.Fetched, err = m.fetchUnknown(c)
	return c, err
}

// relaxedPolicies returns a warning for each policy that is not enforced.
func relaxedPolicies(bundle *manifest.Bundle) []string {
	var warnings []string
	for _, p := range bundle.Policies() {
		if mode := catalog.Mode(p.Spec.Mode); mode == catalog.Audit || mode == catalog.Warn {
			warnings = append(warnings, fmt.Sprintf("policy %s is in mode %s: accesses that it forbids are recorded "+
				"but allowed, even to data that others wrote under its protection", p.Metadata.Name, mode))
		}
	}
	return warnings
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

// feasible finds the errors that would otherwise appear only when the bundle is in force.
func (m *Monitor) feasible(resolved map[string]*manifest.Resolved) error {
	if _, err := os.Stat(m.options.Data); err != nil {
		return api.Unavailable("apply", "make the directory that --data names available again", "data directory: %v",
			err)
	}
	if err := m.checkRuntimes(resolved); err != nil {
		return api.Invalid("apply", "", "%v", err)
	}
	if err := m.checkStores(resolved); err != nil {
		return api.Invalid("apply", "", "%v", err)
	}
	for name, one := range resolved {
		if err := pipeline.Check(one); err != nil {
			return api.Invalid("apply pipeline "+name, "", "%v", err)
		}
	}
	return nil
}

// analyzeAgain repeats the analysis of every pipeline that has one, if the state has
// changed since. A failure is only a warning, since without a result the monitor decides
// on accesses when they happen.
func (m *Monitor) analyzeAgain(ctx context.Context) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		known, p := m.analyses[name], m.pipelines[name]
		if p == nil {
			m.mu.Lock()
			delete(m.analyses, name)
			m.mu.Unlock()
			continue
		}
		if known.result != nil && known.result.Current(m.state()) && known.plan == p.Plan() {
			continue
		}
		if _, err := m.analyze(ctx, p, api.AnalyzeRequest{Scope: api.ScopeAll}, func(api.Progress) {}); err != nil {
			warnings = append(warnings, fmt.Sprintf("pipeline %s is not analysed: %v; until shai analyze succeeds, "+
				"the monitor decides on its accesses when they happen", name, err))
		}
	}
	return warnings
}

// record writes an audit record that belongs to no single pipeline.
func (m *Monitor) record(event audit.Event) {
	m.lost(event, m.audit.Append(event))
}

// lost reports an event that was not recorded, if there is an error.
func (m *Monitor) lost(event audit.Event, err error) {
	if err != nil {
		m.metrics.AuditFailed()
		m.logger.Error("audit record is lost", "kind", event.Kind, "error", err)
	}
}
