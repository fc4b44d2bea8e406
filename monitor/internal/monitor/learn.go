// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/audit"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/metrics"
	"shai.dev/monitor/internal/pipeline"
)

// learner collects accesses that no analysis has foreseen, until watchUnforeseen extends the
// analyses with them. It is safe for concurrent use.
type learner struct {
	wake chan struct{}

	mu      sync.Mutex
	pending map[string][]analysis.Access // by pipeline
	// refused are accesses that an analysis does not allow, in one version of the catalog: each
	// session reports them again, since the policies allowed it the access itself.
	refused map[refusal]bool
	version version
	// rising counts the classes of a set that an instance has learnt, in this version; see widened.
	rising    map[rise]int
	countedIn version
}

// rise is an instance's use of a set ("syse/albums").
type rise struct{ pipeline, instance, set string }

type refusal struct {
	pipeline, instance string
	class              uint32
}

// version identifies states of the catalog on which all decisions are the same.
type version struct {
	bundle string
	facts  uint64
}

func versionOf(state *catalog.State) version {
	return version{state.BundleHash(), state.FactsVersion()}
}

// maxUnforeseen limits what a pipeline's sessions can make the monitor remember. What comes on
// top is not learnt.
const maxUnforeseen = 1 << 12

// maxRefused limits the refusals that are remembered. Then they are forgotten.
const maxRefused = 1 << 14

func newLearner() *learner {
	return &learner{wake: make(chan struct{}, 1), pending: map[string][]analysis.Access{}, refused: map[refusal]bool{},
		rising: map[rise]int{}}
}

// risingClasses is the number of classes of a set that an instance learns one by one. Its activity
// rises: who reads so many will read more.
const risingClasses = 8

// maxRising limits what is counted. Then it is forgotten.
const maxRising = 1 << 14

// widened returns accesses with, for each instance that has just learnt risingClasses classes of a
// set, accesses to all other classes of the set: they are decided on together, before they are
// read, instead of one by one when they are.
func (l *learner) widened(pipeline string, accesses []analysis.Access, state *catalog.State) []analysis.Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := versionOf(state); l.countedIn != now || len(l.rising) >= maxRising {
		l.countedIn = now
		clear(l.rising)
	}
	all := slices.Clone(accesses)
	for _, access := range accesses {
		if access.Class == 0 {
			continue
		}
		set := state.Class(access.Class).Set
		of := rise{pipeline, access.Instance.Name(), set}
		if l.rising[of]++; l.rising[of] != risingClasses {
			continue
		}
		for _, class := range state.ClassesOf(set) {
			all = append(all, analysis.Access{Instance: access.Instance, Class: class})
		}
	}
	return all
}

// add notes an access, unless it was refused in this version. It never blocks for long.
func (l *learner) add(pipeline string, access analysis.Access, now version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version == now && l.refused[refusal{pipeline, access.Instance.Name(), access.Class}] {
		return
	}
	if len(l.pending[pipeline]) >= maxUnforeseen {
		return
	}
	l.pending[pipeline] = append(l.pending[pipeline], access)
	select {
	case l.wake <- struct{}{}:
	default: // the last one is still pending
	}
}

// refuse remembers the accesses that a pipeline's analysis in a version does not allow.
func (l *learner) refuse(pipeline string, result *analysis.Result, accesses []analysis.Access, of version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, access := range accesses {
		found, known := result.Instance(access.Instance)
		if known && (access.Class == 0 || slices.Contains(found.Reads, access.Class)) {
			continue
		}
		if l.version != of || len(l.refused) == maxRefused {
			l.version = of
			clear(l.refused)
		}
		l.refused[refusal{pipeline, access.Instance.Name(), access.Class}] = true
	}
}

// take returns what was noted since the last call.
func (l *learner) take() map[string][]analysis.Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.pending
	l.pending = map[string][]analysis.Access{}
	return taken
}

// unforeseen is told of accesses by the pipelines.
func (m *Monitor) unforeseen(pipeline string, access analysis.Access) {
	m.learner.add(pipeline, access, versionOf(m.state()))
}

// watchUnforeseen extends the analyses with accesses that were not foreseen, until ctx ends.
func (m *Monitor) watchUnforeseen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.learner.wake:
		}
		for name, accesses := range m.learner.take() {
			if err := m.learn(ctx, name, accesses); err != nil && ctx.Err() == nil {
				m.logger.Error("sessions ask the monitor again for what it has already decided on", "pipeline", name,
					"error", err)
			}
		}
	}
}

// learn extends a pipeline's analysis, and gives the sets that have grown to live sessions. It
// is a change like one of facts: none of them comes in between, so that no access outlives the
// facts that it rests on. A pipeline without an analysis in force learns nothing.
func (m *Monitor) learn(ctx context.Context, name string, accesses []analysis.Access) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	p, known := m.pipelines[name], m.analyses[name]
	if p == nil || known == nil || known.result == nil || known.plan != p.Plan() || !known.result.Current(m.state()) {
		return nil
	}
	accesses, err := remembered(p, known.result, accesses)
	if err != nil {
		return err
	}
	next, affected, err := known.result.Extend(ctx, m.state(), m.learner.widened(name, accesses, m.state()),
		analysis.Options{Now: time.Now()})
	if err != nil {
		return fmt.Errorf("extend the analysis of pipeline %s: %w", name, err)
	}
	m.learner.refuse(name, next, accesses, versionOf(m.state()))
	m.services.Binding.Lock()
	defer m.services.Binding.Unlock()
	m.setAnalysis(name, &analyzed{plan: known.plan, result: next, report: known.report}) // first: it follows changes
	m.rescheduleExpiry()
	for _, one := range affected {
		if err := p.Grow(one.After); err != nil {
			return err
		}
		m.recordLearned(name, one)
	}
	published := map[string]bool{}
	for _, access := range accesses {
		if name := access.Instance.Name(); !published[name] {
			published[name] = p.Publish(access)
		}
	}
	for _, one := range affected { // last: what is counted is in force
		countLearned(p.Counts(), one)
	}
	return nil
}

// remembered returns the accesses of instances that later runs of the analysis will have, too:
// those that the result has, and those that are in the plan because they were seen.
func remembered(p *pipeline.Pipeline, result *analysis.Result, accesses []analysis.Access) ([]analysis.Access, error) {
	isKnown := func(access analysis.Access) bool {
		_, known := result.Instance(access.Instance)
		return known
	}
	if !slices.ContainsFunc(accesses, func(access analysis.Access) bool { return !isKnown(access) }) {
		return accesses, nil
	}
	if err := p.Remember(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, instance := range p.Plan().Seen {
		seen[instance.Name()] = true
	}
	return slices.DeleteFunc(accesses, func(access analysis.Access) bool {
		return !isKnown(access) && !seen[access.Instance.Name()]
	}), nil
}

// recordLearned records what a set has gained.
func (m *Monitor) recordLearned(name string, one analysis.Affected) {
	event := audit.Event{Kind: audit.Analysis, Pipeline: name, Task: one.Instance.Task, Instance: one.Instance.Name(),
		Operation: "learn", Allowed: true, Reason: fmt.Sprintf("classes gained: %d", len(one.Gained))}
	if one.Before == nil {
		event.Operation = "foresee"
	}
	m.record(event)
}

// countLearned counts it.
func countLearned(counts *metrics.Pipeline, one analysis.Affected) {
	if one.Before == nil {
		counts.Foreseen()
	} else {
		counts.Learned(len(one.Gained))
	}
}
