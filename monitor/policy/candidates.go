// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"
	"time"
)

// Candidates returns, in ascending order, argument lists (in the order of Parameters) for
// which the comparison taint ⊒ label may succeed. It finds them through the facts'
// indexes, not by trying: it runs the template's clauses backwards, with the parameters
// as variables. The caller still has to decide each with [Decide]. If complete is true,
// every other argument list is denied, until next at least, if that is not zero: see
// [Decision.Next].
func (t *Template) Candidates(taint Label, state State, environment Environment) (bindings [][]string, complete bool,
	next time.Time) {
	if len(t.parameters) == 0 {
		return [][]string{{}}, true, next
	}
	if len(t.obligations) == 0 || taint.isEmpty() {
		return nil, false, next // it is not for the arguments in the taint that there may be no obligations
	}
	// Every obligation of the label has to be covered. The argument lists that can cover
	// the first one include those that can cover all.
	clauses := t.read
	if t.obligations[0].rule == updateRule {
		clauses = t.update
	}
	complete = true
	var found [][]string
	for _, held := range taint.duties {
		premises := held.rule().compiled().clauses
		if len(premises) == 0 {
			return nil, false, next // nobody may read the data, so it covers everything
		}
		for _, template := range clauses {
			more, all, later := t.backwards(template, &premises[0], held.rule(), state, environment)
			found, complete = append(found, more...), complete && all
			if next.IsZero() || !later.IsZero() && later.Before(next) {
				next = later
			}
		}
		complete = complete && !splittable(&premises[0])
	}
	slices.SortFunc(found, slices.Compare[[]string])
	return slices.CompactFunc(found, slices.Equal[[]string]), complete, next
}

// splittable reports whether the comparison may be split into cases over the premise,
// which a template that runs backwards does not do.
func splittable(premise *clause) bool {
	return slices.ContainsFunc(premise.body, func(l literal) bool { return l.op == opSays })
}

// backwards solves one clause of the template from a premise of the taint.
func (t *Template) backwards(template lowered, premise *clause, owner Rule, state State,
	environment Environment) (found [][]string, complete bool, next time.Time) {
	if len(template.names)+len(t.parameters) > MaxVariables {
		return nil, false, next
	}
	open := t.opened(template)
	p := newProver(state, &environment)
	defer p.release()
	p.comparing, p.anyConduit = true, true
	p.hypotheses = append(p.hypotheses, hypothesis{premise.body, frozenValues[:premise.variables], owner.this,
		owner.owner()})
	p.open(Rule{}, &open.clause)
	complete = true
	p.prove(open.clause.body, 0, func() bool {
		arguments := make([]string, len(open.parameters))
		for i, number := range open.parameters {
			if number < 0 {
				complete = false
				return true
			}
			value := p.bindings[number]
			switch {
			case value.kind == Wildcard:
				complete = false
				return true
			case value.kind != t.types[i]:
				return false // the argument has another type than the parameter: the clause cannot hold
			case value.kind != StringValue:
				complete = false // its argument may be written in another way
				return true
			default:
				arguments[i] = value.text
			}
		}
		found = append(found, arguments)
		return false
	})
	return found, complete && p.budget.err == nil, p.budget.next.Instant()
}

// opened is a template clause with parameters as variables.
type opened struct {
	clause     clause
	parameters []int64 // their variables; -1 where the clause does not mention one
}

// opened drops the literals that only restrict further (each, isAsRestrictive, those about the
// policy's conduit, which is not known here, and those that stay unready): the result is used to
// find candidates, not to decide.
func (t *Template) opened(template lowered) opened {
	from := int64(len(template.names))
	mapping := func(term Value) Value {
		if term.kind == kindParameter {
			return Value{kind: kindVariable, number: from + term.number}
		}
		return term
	}
	var body []literal
	for i := range template.body {
		l := template.body[i].replace(mapping)
		if l.isEach() || l.op == opAtLeast || l.mentionsThis() {
			continue
		}
		body = append(body, l)
	}
	plan := newPlanner(append(slices.Clone(template.names), t.parameters...), true)
	ordered, _ := plan.order(body)
	result := opened{clause: plan.finish(ordered, template.position)}
	for i := range t.parameters {
		result.parameters = append(result.parameters, plan.numbers[from+int64(i)])
	}
	return result
}
