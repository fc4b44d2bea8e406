// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
)

// maxChangesShown limits the length of the lists in a comparison.
const maxChangesShown = 20

// comparison compares a candidate with the bundle in force.
type comparison struct {
	change   *catalog.Change // from the state in force to the candidate's
	progress func(api.Progress)
	begun    time.Time
	sides    map[string]*compared
	modes    []api.ModeChange
	notKnown []api.NotKnown
	// One for each number of a choice: the changes from the state in force that they would make, under
	// its bundle and under the candidate.
	chosenBefore, chosenAfter []*catalog.Change
}

// compared is one pipeline before and after; a plan is nil if the pipeline does not exist
// there.
type compared struct {
	before, after *analysis.Plan
	result        *analysis.Result // of before, nil if none is in force
	same          bool             // only facts can make a difference
}

// Compare implements [api.Service]. It holds no lock during the analyses, since the
// states that they use are immutable.
func (m *Monitor) Compare(ctx context.Context, request api.CompareRequest, progress func(api.Progress)) (api.Comparison,
	error) {
	c, err := m.prepareComparison(request)
	if err != nil {
		return api.Comparison{}, err
	}
	c.progress = progress
	gathered := analysis.NewComparison(c.change)
	for _, name := range slices.Sorted(maps.Keys(c.sides)) {
		before, after, err := c.analyze(ctx, c.sides[name])
		if err != nil {
			return api.Comparison{}, fmt.Errorf("compare pipeline %s: %w", name, err)
		}
		gathered.Add(before, after)
		if err := c.choices(ctx, gathered, c.sides[name], before, after); err != nil {
			return api.Comparison{}, fmt.Errorf("compare the choices of pipeline %s: %w", name, err)
		}
	}
	changes := gathered.Changes()
	out := api.Comparison{
		From: c.change.Before.BundleHash(), To: c.change.After.BundleHash(),
		FlowsBefore: changes.Before, FlowsAfter: changes.After,
		UsersTotal: uint64(len(changes.Users)), Users: firstOf(changes.Users), DocumentsTotal: changes.DocumentsTotal,
		Documents: []string{}, Modes: firstOf(c.modes), ModesTotal: uint64(len(c.modes)),
	}
	out.Opened, out.OpenedTotal = flowChanges(changes.Opened)
	out.Closed, out.ClosedTotal = flowChanges(changes.Closed)
	out.WouldClose, out.WouldCloseTotal = flowChanges(changes.WouldClose)
	out.WouldOpen, out.WouldOpenTotal = flowChanges(changes.WouldOpen)
	out.WouldOpenNotKnown = append([]api.NotKnown{}, c.notKnown...)
	for _, id := range firstOf(changes.Documents) {
		if name, known := c.change.Before.Name(id); known {
			out.Documents = append(out.Documents, name)
		}
	}
	out.DurationMicroseconds = time.Since(c.begun).Microseconds()
	return out, nil
}

// prepareComparison reads the candidate and computes the state that it would lead to.
func (m *Monitor) prepareComparison(request api.CompareRequest) (*comparison, error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	candidate, err := m.candidateOf(request.Sources, request.Prune)
	if err != nil {
		return nil, err
	}
	s, err := m.prepareSwap(candidate)
	if err != nil {
		return nil, err
	}
	defer s.discard()
	c := &comparison{begun: time.Now(), sides: map[string]*compared{}}
	if c.change, err = m.catalog.Shadow(candidate.catalog); err != nil {
		return nil, api.Invalid("compare", "", "%v", err)
	}
	if err := m.prepareChoices(c, candidate.catalog); err != nil {
		return nil, err
	}
	c.modes = modeChanges(c.change.Before.Bundle(), c.change.After.Bundle(), s.old, s.next)
	for name, p := range s.old {
		if err := p.Remember(); err != nil {
			return nil, err
		}
		plan := *p.Plan()
		side := &compared{before: &plan}
		if known := m.analyses[name]; known != nil && known.plan == p.Plan() &&
			known.result.Covers(&plan, c.change.Before) {
			side.result = known.result.On(&plan)
		}
		c.sides[name] = side
	}
	for name, p := range s.next {
		side := c.sides[name]
		if side == nil {
			side = &compared{}
			c.sides[name] = side
		}
		plan := *p.Plan()
		side.after, side.same = &plan, p == s.old[name]
		if side.before != nil {
			plan.Seen = side.before.Seen // instances seen before are expected on both sides
		}
	}
	return c, nil
}

// analyze finds the flows of one pipeline before and after.
func (c *comparison) analyze(ctx context.Context, one *compared) (before, after *analysis.Side, err error) {
	if one.before != nil {
		if before, err = c.side(ctx, one.before, c.change.Before, one.result); err != nil {
			return nil, nil, err
		}
	}
	if one.after == nil {
		return before, nil, nil
	}
	var known *analysis.Result
	if one.same {
		if known, _, err = before.Held.Follow(ctx, c.change, c.options()); err != nil {
			return nil, nil, err
		}
	}
	after, err = c.side(ctx, one.after, c.change.After, known)
	return before, after, err
}

// side returns a pipeline's flows in one state. held is the result with every policy
// enforced, nil if it is not known yet.
func (c *comparison) side(ctx context.Context, plan *analysis.Plan, state *catalog.State,
	held *analysis.Result) (*analysis.Side, error) {
	var err error
	if held == nil {
		if held, err = analysis.Run(ctx, plan, state, c.options()); err != nil {
			return nil, err
		}
	}
	side := &analysis.Side{Open: held, Held: held}
	if state.Waive() != nil {
		options := c.options()
		options.Open = true
		side.Open, err = analysis.Run(ctx, plan, state, options)
	}
	return side, err
}

func (c *comparison) options() analysis.Options {
	return analysis.Options{Now: c.begun, Progress: func(done, total uint64) {
		c.progress(api.Progress{Phase: "instances", Done: done, Total: total})
	}}
}

func firstOf[T any](list []T) []T {
	return append([]T{}, list[:min(len(list), maxChangesShown)]...)
}

// flowChanges returns a list of changes for the API, and the number of flows in the whole
// list.
func flowChanges(list []analysis.FlowChange) (shown []api.FlowChange, total uint64) {
	for _, change := range list {
		total += change.Flows
	}
	shown = []api.FlowChange{}
	for _, f := range firstOf(list) {
		shown = append(shown, api.FlowChange{
			Pipeline: f.Pipeline, Task: f.Task, Instance: f.Instance.Name(), Instances: f.Instances, Access: f.Access,
			Conduits: f.Conduits, Conduit: f.Conduit, Policy: f.Policy, Classes: f.Classes, Documents: f.Documents,
			Flows: f.Flows,
		})
	}
	return shown, total
}
