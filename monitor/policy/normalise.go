// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// normalise simplifies a conjunction whose parameters are bound: it computes constants,
// substitutes equalities, makes the clock a term of its own, and removes literals that
// always hold. It returns false if the conjunction can never hold.
//
// This makes evaluation faster, and it lets comparison see through different spellings:
// afterwards, variables that are still distinct are related only by the literals that
// mention them.
func normalise(body []literal) ([]literal, bool) {
	body = slices.Clone(body)
	for {
		simplified, changed, ok := simplify(body)
		if !ok {
			return nil, false
		}
		body = simplified
		if !changed {
			return dropDuplicates(body), true
		}
	}
}

// simplify makes one step: it removes the first literal that is equivalent to a
// substitution.
func simplify(body []literal) (simplified []literal, changed, ok bool) {
	for i := range body {
		l := &body[i]
		var verdict verdict
		var bindings []binding
		switch {
		case l.op == opTime:
			verdict, bindings = equate(l.arguments[0], Value{kind: kindNow})
			if verdict == undecided && l.arguments[0].concrete() {
				body[i] = literal{op: opEq, position: l.position, arguments: []Value{{kind: kindNow}, l.arguments[0]}}
				return body, true, true
			}
		case l.op == opEq:
			verdict, bindings = equate(l.arguments[0], l.arguments[1])
		case l.op.relational():
			verdict = decideRelation(l)
		case l.op.arithmetic() || l.op == opConcat:
			verdict, bindings = decideComputation(l)
		case l.op == opType && l.arguments[0].concrete():
			name, _ := kindName(l.arguments[0])
			verdict, bindings = equate(l.arguments[1], name)
		case l.op == opPrefix && l.arguments[0].concrete() && l.arguments[1].concrete():
			verdict = decided(within(l.arguments[0], l.arguments[1]))
		case signatures[l.op].functional:
			verdict, bindings = equateEarlier(body[:i], l)
		}
		switch verdict {
		case refuted:
			return nil, false, false
		case settled:
			body = slices.Delete(body, i, i+1)
			return substitute(body, bindings), true, true
		}
	}
	return body, false, true
}

type verdict uint8

const (
	undecided verdict = iota
	settled           // holds under the bindings; the literal can be removed
	refuted
)

func decided(holds bool) verdict {
	if holds {
		return settled
	}
	return refuted
}

type binding struct{ variable, value Value }

// equate makes two terms equal if a substitution suffices for that.
func equate(left, right Value) (verdict, []binding) {
	switch {
	case left == right:
		return settled, nil
	case left.kind == kindVariable:
		return settled, []binding{{left, right}}
	case right.kind == kindVariable:
		return settled, []binding{{right, left}}
	case left.concrete() && right.concrete():
		return refuted, nil
	}
	return undecided, nil
}

func decideRelation(l *literal) verdict {
	left, right := l.arguments[0], l.arguments[1]
	switch {
	case left.concrete() && right.concrete():
		return decided(relate(l.op, left, right))
	case left == right:
		return decided(l.op == opLe || l.op == opGe)
	}
	return undecided
}

// known returns the constant, or a Wildcard for a term that is not a constant yet.
func known(term Value) Value {
	if term.concrete() {
		return term
	}
	return Value{}
}

func decideComputation(l *literal) (verdict, []binding) {
	x, y, z := l.arguments[0], l.arguments[1], l.arguments[2]
	missing := 0
	for _, argument := range l.arguments {
		if !argument.concrete() {
			missing++
		}
	}
	invertible := l.op == opAdd || l.op == opSub || l.op == opConcat
	if missing > 1 || missing == 1 && x.concrete() && !invertible {
		return undecided, nil
	}
	values, ok := compute(l.op, known(x), known(y), known(z))
	if !ok {
		return refuted, nil
	}
	for i, argument := range l.arguments {
		if !argument.concrete() {
			if argument.kind != kindVariable {
				return undecided, nil
			}
			return settled, []binding{{argument, values[i]}}
		}
	}
	return settled, nil
}

// equateEarlier makes the argument of a functional predicate equal to that of an earlier
// one: for example, a session has one region.
func equateEarlier(earlier []literal, l *literal) (verdict, []binding) {
	for i := range earlier {
		if earlier[i].op == l.op {
			return equate(earlier[i].arguments[0], l.arguments[0])
		}
	}
	return undecided, nil
}

func substitute(body []literal, bindings []binding) []literal {
	if len(bindings) == 0 {
		return body
	}
	mapping := func(term Value) Value {
		for _, b := range bindings {
			if term == b.variable {
				return b.value
			}
		}
		return term
	}
	for i := range body {
		body[i] = body[i].replace(mapping)
	}
	return body
}

// dropDuplicates removes literals that are equal to an earlier one.
func dropDuplicates(body []literal) []literal {
	kept := body[:0:0]
	seen := make([]string, 0, len(body))
	for i := range body {
		written := string(body[i].appendTo(nil, nil))
		if !slices.Contains(seen, written) {
			seen = append(seen, written)
			kept = append(kept, body[i])
		}
	}
	return kept
}
