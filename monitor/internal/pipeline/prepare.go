// SPDX-License-Identifier: BSD-2-Clause

package pipeline

import (
	"context"
	"fmt"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/wire"
)

// ActiveInstances returns the instances with an open session.
func (p *Pipeline) ActiveInstances() []analysis.Instance {
	var active []analysis.Instance
	for _, s := range p.live() {
		if holds := s.bound(); holds != nil {
			active = append(active, holds.instance)
		}
	}
	return active
}

// Remember puts the instances that have been seen into the plan. They stay in the
// catalog: a user who came once from another region is expected there from then on. Calls do
// not overlap with each other, nor with an analysis.
func (p *Pipeline) Remember() error {
	if err := p.services.storeSeen(); err != nil {
		return fmt.Errorf("analyse pipeline %s: %w", p.name, err)
	}
	predictions, err := p.services.Catalog.Predictions()
	if err != nil {
		return fmt.Errorf("analyse pipeline %s: %w", p.name, err)
	}
	var seen []analysis.Instance
	for _, prediction := range predictions {
		for _, task := range p.tasks {
			if prediction.Task == catalog.NameIn(p.name, task.name) &&
				p.hasGiven(prediction.Parameters, task.spec.Parameters) {
				seen = append(seen, instanceOf(task, prediction.Parameters))
			}
		}
	}
	p.plan.Remember(seen)
	return nil
}

// hasGiven reports whether values has a value for every parameter that is not derived. A prediction may
// be older than the task's manifest.
func (p *Pipeline) hasGiven(values map[string]string, parameters []string) bool {
	for _, parameter := range parameters {
		if values[parameter] == "" && !p.plan.IsDerived(parameter) {
			return false
		}
	}
	return true
}

// Sets are the capability sets of a pipeline's instances, nil in mode baseline.
type Sets map[string]*capabilitySet // by instance

// PrepareSets prepares the capability set of every analysed instance. If the earlier
// result (which may be nil) said the same about an instance, its set is reused. It calls
// progress now and then with the number of instances that are done.
func (p *Pipeline) PrepareSets(ctx context.Context, result, earlier *analysis.Result,
	progress func(done, total uint64)) (_ Sets, err error) {
	if p.Mode() == wire.ModeBaseline {
		return nil, nil
	}
	if err := p.openKeyValue(ctx); err != nil {
		return nil, err
	}
	sets := Sets{}
	var made []*capabilitySet
	defer func() {
		if err != nil {
			for _, holds := range made {
				holds.close()
			}
			p.stale.unneeded.Store(true)
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
			sets[same.subject.Instance] = same
			continue
		}
		holds, err := p.prepareAnalyzed(p.services.state(), task, found)
		if err != nil {
			return nil, err
		}
		made = append(made, holds)
		sets[holds.subject.Instance] = holds
		if i%64 == 0 {
			progress(uint64(i), uint64(len(instances)))
		}
	}
	progress(uint64(len(instances)), uint64(len(instances)))
	return sets, ctx.Err()
}

// Discard closes sets that do not come into force.
func (p *Pipeline) Discard(sets Sets) {
	for name, holds := range sets {
		if p.setOf(name) != holds {
			holds.close()
		}
	}
	p.stale.unneeded.Store(true)
}

// setBefore returns the set in force of an instance if the result says the same as the
// earlier one, else nil.
func (p *Pipeline) setBefore(found *analysis.Capabilities, earlier *analysis.Result) *capabilitySet {
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
func (p *Pipeline) prepareAnalyzed(state *catalog.State, task *Task,
	found *analysis.Capabilities) (*capabilitySet, error) {
	values := map[string]string{}
	for i, parameter := range task.spec.Parameters {
		values[parameter] = found.Instance.Arguments[i]
	}
	return p.prepare(state, task, values, found, true)
}

// documentClasses returns those of the classes whose conduits the view links.
func (p *Pipeline) documentClasses(state *catalog.State, classes []uint32) []uint32 {
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
