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
	"shai.dev/monitor/internal/manifest"
	"shai.dev/monitor/internal/meaning"
	"shai.dev/monitor/internal/monitor/api"
	"shai.dev/monitor/internal/pipeline"
)

// swap is one change of the bundle. A pipeline whose meaning changes is quiesced first:
// its tasks and sessions end, so that nothing granted under the old bundle is left when
// the new one is in force. The other pipelines are not disturbed. After a failure the old
// bundle stays in force, on disk and in the running monitor.
type swap struct {
	monitor   *Monitor
	candidate *candidate
	old, next map[string]*pipeline.Pipeline
	leaving   []*pipeline.Pipeline            // of old, not in next: by name
	coming    []*pipeline.Pipeline            // of next, not in old: by name
	running   map[*pipeline.Pipeline][]string // tasks of leaving pipelines that ran
	change    *catalog.Change                 // the change that made the bundle durable
	before    *manifest.Bundle
	// unreadable lists warnings about documents that tasks cannot read.
	unreadable []string
	since      time.Time // when the old bundle was applied
}

// prepareSwap prepares the candidate's pipelines and changes none of the running ones.
// The caller runs the swap or discards it.
func (m *Monitor) prepareSwap(c *candidate) (_ *swap, err error) {
	compiled, err := catalog.Compile(c.catalog)
	if err != nil {
		return nil, api.Invalid("apply", "", "%v", err)
	}
	m.mu.RLock()
	s := &swap{monitor: m, candidate: c, old: m.pipelines, before: m.bundle, since: m.applied}
	m.mu.RUnlock()
	s.next, s.running = map[string]*pipeline.Pipeline{}, map[*pipeline.Pipeline][]string{}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(c.resolved)) {
		means, err := meaning.Of(c.bundle, c.resolved[name])
		if err != nil {
			return nil, err
		}
		if running := s.old[name]; running != nil && running.Meaning() == means {
			s.next[name] = running
			continue
		}
		made, err := pipeline.New(m.services, pipeline.Definition{Resolved: c.resolved[name], Meaning: means,
			Bind: compiled.Bind})
		if err != nil {
			return nil, api.Invalid("apply pipeline "+name, "", "%v", err)
		}
		s.next[name] = made
		s.coming = append(s.coming, made)
	}
	for _, name := range slices.Sorted(maps.Keys(s.old)) {
		if s.next[name] != s.old[name] {
			s.leaving = append(s.leaving, s.old[name])
		}
	}
	return s, nil
}

// discard releases what was prepared.
func (s *swap) discard() {
	for _, p := range s.coming {
		p.Close()
	}
}

// run makes the swap. Once pipelines have been quiesced, it ignores the end of ctx: it
// finishes with the new bundle in force, or with the old one.
func (s *swap) run(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = s.monitor.assignUsers(s.next)
	}
	if err != nil {
		s.discard()
		return err
	}
	if err := s.quiesce(); err != nil {
		s.discard()
		return errors.Join(api.Conflict("apply", "the previous bundle is still in force; try again", "%v", err),
			s.resume())
	}
	s.inherit() // before the pipelines are in force: who waits for a run has to find it
	if err := s.commit(); err != nil {
		s.discard()
		return errors.Join(api.Invalid("apply", "the previous bundle is still in force", "%v", err), s.resume())
	}
	if err := s.start(); err != nil {
		return s.rollBack(err)
	}
	for _, p := range s.leaving {
		if s.next[p.Name()] == nil {
			s.monitor.forgetRuns(p.Name())
		}
		p.EndRuns()
		p.Close()
	}
	return nil
}

// quiesce ends every task and session of the pipelines that change.
func (s *swap) quiesce() error {
	for _, p := range s.leaving {
		s.running[p] = p.Running()
	}
	var failures []error
	for _, p := range s.leaving {
		failures = append(failures, p.Quiesce(s.monitor.context))
	}
	return errors.Join(failures...)
}

// inherit passes on what the tasks have done.
func (s *swap) inherit() {
	for _, p := range s.coming {
		if old := s.old[p.Name()]; old != nil {
			p.Inherit(old)
		}
	}
}

// commit makes the bundle durable and puts it in force for all pipelines that are not
// quiesced. For sessions that begin this is one step, as with a change of facts.
func (s *swap) commit() error {
	m := s.monitor
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	change, err := m.catalog.Apply(s.candidate.catalog)
	if err != nil && !errors.Is(err, catalog.ErrView) {
		return err // start repairs what is missing in the view
	}
	s.change = change
	s.putInForce(s.next, s.candidate.bundle, time.Now(), change, "apply")
	return nil
}

// putInForce replaces the running pipelines, and updates those that stay for the facts
// that were added and removed. Called with changing and binding held.
func (s *swap) putInForce(pipelines map[string]*pipeline.Pipeline, bundle *manifest.Bundle, applied time.Time,
	change *catalog.Change, operation string) {
	m := s.monitor
	m.mu.Lock()
	m.pipelines, m.bundle, m.applied = pipelines, bundle, applied
	m.mu.Unlock()
	moved := m.services.RefreshRegions()
	m.record(audit.Event{Kind: audit.Bundle, Operation: operation, Allowed: true,
		Reason: fmt.Sprintf("version %d, %s", m.state().Bundle().Version, m.state().BundleHash())})
	s.follow(change)
	for _, change := range m.followLogs() {
		s.follow(change)
	}
	if !moved {
		return
	}
	for name, p := range pipelines {
		if s.old[name] == p {
			p.EndMoved() // the sessions of others have ended
		}
	}
}

// follow updates the analyses and capability sets of the pipelines that the swap does not
// concern. Called with changing and binding held.
func (s *swap) follow(change *catalog.Change) {
	m := s.monitor
	if change.Before.BundleHash() == change.After.BundleHash() &&
		change.Before.FactsVersion() == change.After.FactsVersion() {
		return
	}
	for name, p := range s.next {
		if s.old[name] != p {
			continue
		}
		updated := p.Outdate()
		p.Follow(change)
		p.EndOutdated(change, time.Now())
		ending, err := m.putInForce(m.prepare(name, change.After, func(r *analysis.Result) (*analysis.Result,
			[]analysis.Affected, error) {
			return r.Follow(m.context, change, analysis.Options{Now: time.Now(), Limit: decidedWithin})
		}))
		ending.Wait()
		if err != nil {
			m.logger.Error("the analysis did not follow the bundle as it should", "pipeline", name, "error", err)
		}
		settle(p)
		updated()
	}
}

// start links the new bundle's documents and starts the tasks that were running before.
func (s *swap) start() error {
	if err := s.registerFiles(); err != nil {
		return err
	}
	for _, p := range s.coming {
		for _, old := range s.leaving {
			old.HandOver(p)
		}
	}
	for _, p := range s.coming {
		old := s.old[p.Name()]
		if old == nil {
			continue
		}
		for _, task := range s.running[old] {
			if p.Task(task) == nil {
				continue
			}
			if err := s.monitor.startTask(s.monitor.context, p, (*pipeline.Task).GoOn, task); err != nil {
				return fmt.Errorf("restart task %s/%s: %w", p.Name(), task, err)
			}
		}
	}
	return nil
}

// registerFiles registers the documents that the rules cover, and links them.
func (s *swap) registerFiles() error {
	m := s.monitor
	m.view.Settle()
	_, change, err := m.catalog.RegisterFiles(m.context, m.options.Data, nil)
	if err != nil && !errors.Is(err, catalog.ErrView) {
		return err
	}
	repairs, err := m.view.Verify(m.context, nil)
	if err != nil {
		return fmt.Errorf("link documents: %w", err)
	}
	s.unreadable = append(m.reportUnreadable(), m.refusedDocuments(repairs)...)
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	s.follow(change)
	return nil
}

// rollBack puts the old bundle in force again, on disk and in the running monitor, and
// returns the reason.
func (s *swap) rollBack(cause error) error {
	m := s.monitor
	var failures []error
	for _, p := range s.coming {
		failures = append(failures, p.Quiesce(m.context))
		for _, old := range s.leaving {
			p.HandOver(old)
		}
	}
	if err := s.revert(); err != nil {
		for _, p := range s.coming {
			p.EndRuns()
		}
		failures = append(failures, err)
		return errors.Join(api.Conflict("apply",
			"the new bundle is in force, but the tasks of the pipelines that it changes are stopped; "+
				"correct the cause, then start them or apply the previous bundle", "%v", cause),
			errors.Join(failures...))
	}
	for _, p := range s.coming {
		p.Close()
	}
	if _, err := m.view.Verify(m.context, nil); err != nil {
		failures = append(failures, fmt.Errorf("link documents: %w", err))
	}
	for _, p := range s.leaving {
		p.DropSets() // the new pipeline has removed their key-value users
	}
	failures = append(failures, s.resume())
	m.analyzeAgain(m.context)
	problem := api.Conflict("apply", "the previous bundle is in force again; correct the cause and apply again", "%v",
		cause)
	if err := errors.Join(failures...); err != nil {
		problem.Detail += "; while rolling back: " + err.Error()
	}
	return problem
}

func (s *swap) revert() error {
	m := s.monitor
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	change := s.change
	if change.Bundle {
		var err error
		if change, err = m.catalog.Revert(s.change); err != nil && !errors.Is(err, catalog.ErrView) {
			return err
		}
	}
	s.putInForce(s.old, s.before, s.since, change, "roll back")
	return nil
}

// resume starts the quiesced pipelines again.
func (s *swap) resume() error {
	var failures []error
	for _, p := range s.leaving {
		p.Readmit()
		for _, task := range s.running[p] {
			if err := s.monitor.startTask(s.monitor.context, p, (*pipeline.Task).GoOn, task); err != nil {
				failures = append(failures, fmt.Errorf("restart task %s/%s: %w", p.Name(), task, err))
			}
		}
	}
	return errors.Join(failures...)
}
