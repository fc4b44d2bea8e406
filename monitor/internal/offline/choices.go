// SPDX-License-Identifier: BSD-2-Clause

package offline

import (
	"slices"

	"shai.dev/monitor/internal/analysis"
	"shai.dev/monitor/internal/monitor/api"
)

// Choice is a policy that a principal may choose for documents. No answer counts it: once it is made, others
// may have access, and some no longer.
type Choice struct {
	Conduit string `json:"conduit"` // or the path that has the choice
	api.PolicyChoice
}

// choicesOf lists what can be chosen for a document.
func (p *Project) choicesOf(document string) []Choice {
	item, known := p.catalog.Item(document)
	if !known {
		return nil
	}
	var list []Choice
	for _, one := range item.Choices {
		list = append(list, Choice{document, api.PolicyChoice{Principal: one.By, Policy: one.Policy.String()}})
	}
	return list
}

// choicesIn lists what can be chosen for documents of a pipeline, by path.
func (p *Project) choicesIn(plan *analysis.Plan) []Choice {
	var list []Choice
	for _, rule := range p.state.Bundle().Rules {
		if !slices.ContainsFunc(plan.Sets, func(s analysis.Set) bool { return s.Catalog == rule.Set }) {
			continue
		}
		for _, one := range rule.Choices {
			list = append(list, Choice{rule.Path, api.PolicyChoice{Principal: one.By, Policy: one.Policy.String()}})
		}
	}
	return list
}
