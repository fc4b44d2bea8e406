// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
)

// TemplateClause is a part of a policy that can allow something: a clause of the read or
// update rule, or one exit of a declassify rule.
type TemplateClause struct {
	Rule     string   // "read", "update" or "declassify"
	Position Position // of a clause's head, or of an exit's first literal
}

// Clauses lists the parts of the policy that can allow something, in the order of the text.
func (t *Template) Clauses() []TemplateClause {
	var clauses []TemplateClause
	for _, clause := range t.read {
		clauses = append(clauses, TemplateClause{readRule.String(), clause.position})
	}
	for _, clause := range t.update {
		clauses = append(clauses, TemplateClause{updateRule.String(), clause.position})
	}
	visitExits(t.obligations, func(exit loweredExit) {
		clauses = append(clauses, TemplateClause{declassifyRule.String(), exit.condition.position})
	})
	slices.SortStableFunc(clauses, func(a, b TemplateClause) int {
		return cmp.Or(cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column))
	})
	return slices.Compact(clauses) // an exit of two restrictions is one
}

func visitExits(obligations []loweredObligation, visit func(loweredExit)) {
	for _, o := range obligations {
		for _, exit := range o.exits {
			visit(exit)
			visitExits(exit.behind, visit)
		}
	}
}

// Without returns the policy as it would be without a clause: it allows less, or the same
// if the clause allows nothing that no other one allows.
func (t *Template) Without(clause TemplateClause) *Template {
	less := *t
	is := func(c lowered) bool { return c.position == clause.Position }
	switch clause.Rule {
	case readRule.String():
		less.read = slices.DeleteFunc(slices.Clone(t.read), is)
	case updateRule.String():
		less.update = slices.DeleteFunc(slices.Clone(t.update), is)
	default:
		less.obligations = withoutExit(t.obligations, clause.Position)
	}
	return &less
}

func withoutExit(obligations []loweredObligation, at Position) []loweredObligation {
	kept := slices.Clone(obligations)
	for i := range kept {
		kept[i].exits = nil
		for _, exit := range obligations[i].exits {
			if exit.condition.position == at {
				continue
			}
			exit.behind = withoutExit(exit.behind, at)
			kept[i].exits = append(kept[i].exits, exit)
		}
	}
	return kept
}
