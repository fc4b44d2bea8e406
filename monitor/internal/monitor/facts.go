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

// ChangeFacts implements [api.Service]. The change of the state and of the
// capability sets that rest on it are one step for every session that begins: binding
// waits meanwhile.
func (m *Monitor) ChangeFacts(ctx context.Context, change api.FactChange) (api.FactResult, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.binding.Lock()
	defer m.binding.Unlock()
	done, err := m.catalog.ChangeFacts(factsFrom(change.Remove), factsFrom(change.Add))
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
	}
	for _, name := range slices.Sorted(maps.Keys(m.analyses)) {
		affected, reset, err := m.follow(ctx, name, done)
		if err != nil {
			return result, err
		}
		result.Instances += affected
		result.SessionsReset += reset
	}
	took := time.Since(begun)
	m.metrics.factChange.Observe(took.Seconds())
	result.DurationMicroseconds = took.Microseconds()
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
// catalog. Where the update fails, the pipeline is left without any set: accesses
// are then decided as they happen.
func (m *Monitor) follow(ctx context.Context, name string, change *catalog.Change) (affected, reset int, err error) {
	p := m.pipelines[name]
	known := m.analyses[name]
	if p == nil || known == nil || known.result == nil {
		return 0, 0, nil
	}
	next, touched, err := known.result.Update(ctx, change, analysis.Options{Now: time.Now()})
	if err != nil {
		p.dropSets()
		known.result = nil
		return 0, 0, fmt.Errorf("update the analysis of pipeline %s: %w; run shai analyze", name, err)
	}
	known.result = next
	for _, one := range touched {
		if err := p.replaceSet(one); err != nil {
			p.dropSets()
			return len(touched), reset, err
		}
		if p.spec.Revocation == "immediate" && len(one.Lost) > 0 {
			reset += p.revoke(one.Instance.Name())
		}
	}
	return len(touched), reset, next.Save(m.analysisPath(name))
}

// dropUnforeseen forgets the sets of instances that were not analysed: no analysis
// keeps them in step, so they are made anew when they are needed again.
func (p *pipeline) dropUnforeseen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.sets, func(_ string, holds *capabilitySet) bool { return !holds.analysed })
}

// dropSets forgets every prepared capability set.
func (p *pipeline) dropSets() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets = map[string]*capabilitySet{}
}

// replaceSet brings one instance's capability set in step.
func (p *pipeline) replaceSet(one analysis.Affected) error {
	task := p.tasks[one.Instance.Task]
	if len(task.spec.Parameters) == 0 {
		return nil // its perimeter is decided when it starts
	}
	name := one.Instance.Name()
	if one.After == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.sets, name)
		return nil
	}
	holds, err := p.prepareAnalysed(task, one.After)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets[name] = holds
	return nil
}

// revoke ends the live sessions of an instance; their clients connect again and get
// the new capability set.
func (p *pipeline) revoke(instance string) int {
	count := 0
	for _, s := range p.liveSessions() {
		if s.subject().instance == instance {
			s.kill()
			count++
		}
	}
	return count
}
