// SPDX-License-Identifier: BSD-2-Clause

package monitor

import (
	"context"
	"maps"
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/catalog"
	"shai.dev/monitor/internal/monitor/api"
)

// prepareChoices computes the states in which choices have been made. Without choices in the candidate
// there is none: what can be opened by them can only become less. Called with changing held.
func (m *Monitor) prepareChoices(c *comparison, candidate catalog.Bundle) (err error) {
	if c.chosenAfter, err = m.chosen(candidate); err != nil || len(c.chosenAfter) == 0 {
		return err
	}
	c.chosenBefore, err = m.chosen(m.state().Bundle())
	return err
}

// chosen makes one choice of a bundle after the other, for all conduits at once.
func (m *Monitor) chosen(bundle catalog.Bundle) ([]*catalog.Change, error) {
	var changes []*catalog.Change
	for number := 0; ; number++ {
		made, ok := bundle.Choosing(number)
		if !ok {
			return changes, nil
		}
		change, err := m.catalog.Shadow(made)
		if err != nil {
			return nil, api.Invalid("compare choices", "", "%v", err)
		}
		changes = append(changes, change)
	}
}

// choices compares what choices open in one pipeline.
func (c *comparison) choices(ctx context.Context, gathered *analysis.Comparison, one *compared,
	before, after *analysis.Side) error {
	if one.after == nil {
		return nil
	}
	if asking := policiesAsking(one.after, c.change.After); len(c.chosenAfter) > 0 && !one.same && len(asking) > 0 {
		c.notKnown = append(c.notKnown, api.NotKnown{Pipeline: one.after.Pipeline, Policies: asking})
	}
	if !letsChoose(one.after, c.change.After.Bundle()) {
		return nil
	}
	p := analysis.Choosing{Before: before, After: after}
	var err error
	if one.before != nil {
		if p.BeforeBy, err = c.by(ctx, one.before, c.chosenBefore); err != nil {
			return err
		}
	}
	if p.AfterBy, err = c.by(ctx, one.after, c.chosenAfter); err != nil {
		return err
	}
	gathered.AddChoices(p)
	return nil
}

// letsChoose reports whether a pipeline uses conduits for which policies can be chosen.
func letsChoose(plan *analysis.Plan, bundle catalog.Bundle) bool {
	return slices.ContainsFunc(bundle.Rules, func(rule catalog.Rule) bool {
		return len(rule.Choices) > 0 &&
			slices.ContainsFunc(plan.Sets, func(s analysis.Set) bool { return s.Catalog == rule.Set })
	})
}

// policiesAsking lists the policies by which a pipeline decides and that ask for those of other conduits, of other
// pipelines, too. What they decide with one choice for all documents says nothing of one for some.
func policiesAsking(plan *analysis.Plan, state *catalog.State) []string {
	found := map[string]bool{}
	for _, task := range plan.Tasks {
		found[task.Taint.Policy] = true
	}
	for _, set := range plan.Sets {
		if set.Policy != nil {
			found[set.Policy.Policy] = true
		}
		for _, rule := range state.Bundle().Rules {
			if rule.Set != set.Catalog {
				continue
			}
			found[rule.Policy.Policy] = true
			for _, choice := range rule.Choices {
				found[choice.Policy.Policy] = true
			}
		}
	}
	maps.DeleteFunc(found, func(name string, _ bool) bool {
		template := state.Template(name)
		return template == nil || !template.Dependencies().SpeaksOfConduits()
	})
	return slices.Sorted(maps.Keys(found))
}

func (c *comparison) by(ctx context.Context, plan *analysis.Plan,
	changes []*catalog.Change) ([]analysis.Chosen, error) {
	var all []analysis.Chosen
	for _, change := range changes {
		options := c.options()
		options.Open = change.After.Waive() != nil
		open, err := analysis.Run(ctx, plan, change.After, options)
		if err != nil {
			return nil, err
		}
		all = append(all, analysis.Chosen{Change: change, Open: open})
	}
	return all, nil
}
