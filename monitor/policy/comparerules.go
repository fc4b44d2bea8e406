// SPDX-License-Identifier: BSD-2-Clause

package policy

// ComparedClause says whether everybody whom one clause allows is allowed by another rule,
// too.
type ComparedClause struct {
	Text   string // of the clause
	Source string // its file:line:column
	// Implied reports that it was shown. That it was not is no proof of the contrary: see
	// Witness.
	Implied bool
	// Conditions are those of the state on which the answer rests. None if no state was given.
	Conditions []Condition
	// Nearest says which literal of the other rule does not follow; "" if Implied.
	Nearest string
	// Witness is a case that the clause allows and the other rule does not; nil if none was
	// found. It was evaluated.
	Witness *Witness
}

// CompareRules decides for each clause of the first rule whether the second one allows
// whatever it allows. If all are implied, the first rule is at least as restrictive as the
// second one. Without a state (nil) the answers hold for all facts and conduits, with one
// only under their Conditions. Parameters are bound: the answers are about these arguments.
func CompareRules(first, second Rule, state State) []ComparedClause {
	var compared []ComparedClause
	for i := range first.compiled().clauses {
		compared = append(compared, compareClause(&first.compiled().clauses[i], first, second, state))
	}
	return compared
}

func compareClause(c *clause, first, second Rule, state State) ComparedClause {
	out := ComparedClause{Text: c.text(first.this), Source: first.owner().source(c.position)}
	environment := Environment{}
	if state == nil {
		out.Implied = inEveryState(c, first, second)
	} else {
		p := newProver(state, &environment)
		defer p.release()
		if out.Implied = p.implied(c, first, second.compiled(), second, 0) && p.budget.err == nil; out.Implied {
			out.Conditions = p.takeConditions()
		}
	}
	if out.Implied {
		return out
	}
	out.Nearest = nearestOf(c, first, second)
	if state == nil {
		out.Witness = witness(c, first, second)
	}
	return out
}

// nothing is a state without facts and conduits. What is shown in it and rests on no
// condition holds in every state.
var nothing = StateOf(NewFactBase(), NewConduitTable())

// inEveryState shows that a clause implies one of the conclusions whatever the facts are.
func inEveryState(premise *clause, first, second Rule) bool {
	conclusions := second.compiled().clauses
	for i := range conclusions {
		if followsAlways(premise, first, &conclusions[i], second) {
			return true
		}
	}
	return false
}

func followsAlways(premise *clause, first Rule, conclusion *clause, second Rule) bool {
	p := newProver(nothing, &Environment{})
	defer p.release()
	return p.follows(premise, first, conclusion, second) && len(p.conditions) == 0 && p.budget.err == nil
}

// nearestOf returns the literal of the second rule that came nearest to following.
func nearestOf(premise *clause, first, second Rule) string {
	p := newProver(nothing, &Environment{})
	defer p.release()
	conclusions := second.compiled().clauses
	for i := range conclusions {
		if p.follows(premise, first, &conclusions[i], second) && len(p.conditions) > 0 {
			return "it follows only as long as " + p.conditions[0].String()
		}
	}
	if p.failure.literal == nil {
		return "the other rule allows nobody anything"
	}
	return p.failure.text() + " does not follow from it"
}
