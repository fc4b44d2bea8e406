// SPDX-License-Identifier: BSD-2-Clause

package policy

// PredictedSession are the sessions that a taint's rules name: a comparison with another rule
// can show that it asks for the same, and for nothing else.
type PredictedSession struct {
	Principals, Regions []PredictedTerm
	// Nobody reports that no session satisfies the rules, whatever the facts: then the taint
	// covers every rule.
	Nobody bool
}

// PredictedTerm is a value, or the parameter of the policy that has it.
type PredictedTerm struct {
	Value     Value
	Parameter string // "" if the value is known
}

// PredictedSession returns the sessions that the policy names if it is a taint. ok is false if
// they do not tell what the taint covers: what asks for facts covers what follows from them.
func (t *Template) PredictedSession() (predicted PredictedSession, ok bool) {
	clauses, empty := t.predict(t.obligations, &predicted)
	predicted.Nobody = empty && clauses == 0
	return predicted, predicted.Nobody || clauses > 0 && !empty
}

// predict returns the number of clauses that decide on derived data, and whether there is a rule
// without one. If a clause cannot be predicted, it returns 0 and false.
func (t *Template) predict(obligations []loweredObligation, predicted *PredictedSession) (clauses int, empty bool) {
	for _, o := range obligations {
		rule := t.read
		if o.rule == updateRule {
			rule = t.update
		}
		empty = empty || len(rule) == 0
		clauses += len(rule)
		for _, clause := range rule {
			if !t.predictClause(clause, predicted) {
				return 0, false
			}
		}
		for _, exit := range o.exits {
			more, emptyBehind := t.predict(exit.behind, predicted)
			if len(exit.behind) > 0 && more == 0 && !emptyBehind {
				return 0, false
			}
			clauses, empty = clauses+more, empty || emptyBehind
		}
	}
	return clauses, empty
}

// predictClause allows only literals that no argument can refute: a clause that never holds is
// left out when the policy is bound.
func (t *Template) predictClause(clause lowered, predicted *PredictedSession) bool {
	seen := map[operation]bool{}
	for i := range clause.body {
		l := &clause.body[i]
		if signatures[l.op].functional && seen[l.op] {
			return false
		}
		seen[l.op] = true
		switch l.op {
		case opKey, opRegion:
			term, known := t.predictedTerm(l.arguments[0])
			if !known {
				return false
			}
			if l.op == opKey {
				predicted.Principals = append(predicted.Principals, term)
			} else {
				predicted.Regions = append(predicted.Regions, term)
			}
		case opIP, opPrefix, opTime:
			if l.arguments[0].kind != kindVariable {
				return false
			}
		case opLt, opLe, opGt, opGe:
			if (l.arguments[0].kind == kindVariable) == (l.arguments[1].kind == kindVariable) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (t *Template) predictedTerm(term Value) (PredictedTerm, bool) {
	switch {
	case term.kind == kindParameter:
		return PredictedTerm{Parameter: t.parameters[term.number]}, true
	case term.concrete():
		return PredictedTerm{Value: term}, true
	}
	return PredictedTerm{}, false
}
