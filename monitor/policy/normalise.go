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
//
// It works in rounds. Each round looks at all literals before it changes any, so the
// result does not depend on their order.
func normalise(body []literal) ([]literal, bool) {
	body = slices.Clone(body)
	for guess := false; ; {
		rewritten, changed, ok := rewrite(body, guess)
		if !ok {
			return nil, false
		}
		terms := equalTerms(rewritten)
		bindings, consistent := terms.bindings()
		if !consistent {
			return nil, false
		}
		body = dropSettled(substitute(rewritten, bindings))
		if changed = changed || len(bindings) > 0; changed {
			guess = false
		} else if guess {
			return dropClock(body), true
		} else {
			guess = true
		}
	}
}

// rewrite replaces literals that follow from constants: by nothing, or by equalities. It
// returns false if one can never hold. guess also inverts operations of which the result
// does not determine the operand; it comes last, when nothing else says more about the
// operand.
func rewrite(body []literal, guess bool) (rewritten []literal, changed, ok bool) {
	for i := range body {
		l := &body[i]
		equality := func(left, right Value) literal {
			return literal{op: opEq, position: l.position, arguments: []Value{left, right}}
		}
		verdict, terms := undecided, [2]Value{}
		switch {
		case l.op == opTime && l.arguments[0].kind != kindNow:
			changed = true
			rewritten = append(rewritten, equality(l.arguments[0], Value{kind: kindNow}),
				literal{op: opTime, position: l.position, arguments: []Value{{kind: kindNow}}})
			continue
		case l.op.relational() && l.op != opEq:
			verdict = decideRelation(l)
		case l.op.arithmetic() || l.op == opConcat:
			verdict, terms = decideComputation(l, guess)
		case l.op == opType && l.arguments[0].concrete():
			name, _ := kindName(l.arguments[0])
			verdict, terms = equated, [2]Value{l.arguments[1], name}
		case l.op == opPrefix && l.arguments[0].concrete() && l.arguments[1].concrete():
			verdict = decided(within(l.arguments[0], l.arguments[1]))
		}
		switch verdict {
		case refuted:
			return nil, false, false
		case equated:
			rewritten = append(rewritten, equality(terms[0], terms[1]))
		case undecided:
			rewritten = append(rewritten, *l)
		}
		changed = changed || verdict != undecided
	}
	return rewritten, changed, true
}

type verdict uint8

const (
	undecided verdict = iota
	settled           // always holds
	equated           // holds if two terms are equal
	refuted
)

func decided(holds bool) verdict {
	if holds {
		return settled
	}
	return refuted
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

func decideComputation(l *literal, guess bool) (verdict, [2]Value) {
	x, y, z := l.arguments[0], l.arguments[1], l.arguments[2]
	missing := 0
	for _, argument := range l.arguments {
		if !argument.concrete() {
			missing++
		}
	}
	invertible := l.op == opAdd || l.op == opSub || l.op == opConcat
	// The seconds between two times are rounded, so there is more than one such time.
	ambiguous := l.op == opSub && x.kind == IntegerValue && (y.kind == TimeValue || z.kind == TimeValue)
	if missing > 1 || missing == 1 && x.concrete() && (!invertible || ambiguous && !guess) {
		return undecided, [2]Value{}
	}
	values, ok := compute(l.op, known(x), known(y), known(z))
	if !ok {
		return refuted, [2]Value{}
	}
	for i, argument := range l.arguments {
		if !argument.concrete() {
			return equated, [2]Value{argument, values[i]}
		}
	}
	return settled, [2]Value{}
}

// termClasses are sets of terms that have to be equal.
type termClasses [][]Value

// equalTerms collects what the literals say about equal terms. Functional predicates hold
// for one value: for example, a session has one region.
func equalTerms(body []literal) termClasses {
	var classes termClasses
	for i := range body {
		switch l := &body[i]; {
		case l.op == opEq:
			classes = classes.join(l.arguments[0], l.arguments[1])
		case signatures[l.op].functional && l.op != opTime:
			for j := range body[:i] {
				if body[j].op == l.op {
					classes = classes.join(body[j].arguments[0], l.arguments[0])
					break
				}
			}
		}
	}
	return classes
}

func (c termClasses) join(left, right Value) termClasses {
	joined := []Value{left, right}
	var rest termClasses
	for _, class := range c {
		if slices.Contains(class, left) || slices.Contains(class, right) {
			joined = append(joined, class...)
		} else {
			rest = append(rest, class)
		}
	}
	return append(rest, joined)
}

type binding struct{ variable, value Value }

// bindings replaces each variable by the term of its class that says most: a constant, or
// the conduit's name, or the clock, or one variable for all. It returns false if two
// different constants would have to be equal.
func (c termClasses) bindings() (bindings []binding, consistent bool) {
	for _, class := range c {
		best := class[0]
		for _, term := range class[1:] {
			if term.concrete() && best.concrete() && term != best {
				return nil, false
			}
			if tellsMore(term, best) {
				best = term
			}
		}
		for _, term := range class {
			if term.kind == kindVariable && term != best {
				bindings = append(bindings, binding{term, best})
			}
		}
	}
	return bindings, true
}

// tellsMore orders the terms of a class. Between variables it prefers the earlier one,
// which changes only its name.
func tellsMore(a, b Value) bool {
	rank := func(term Value) int {
		switch {
		case term.concrete():
			return 0
		case term.kind == kindThis:
			return 1
		case term.kind == kindNow:
			return 2
		}
		return 3
	}
	if first, second := rank(a), rank(b); first != second {
		return first < second
	}
	return a.kind == kindVariable && a.number < b.number
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

// dropSettled removes equalities of equal terms, and literals that are equal to an
// earlier one. It puts the sides of the other equalities in order.
func dropSettled(body []literal) []literal {
	kept := body[:0:0]
	seen := make([]string, 0, len(body))
	for i := range body {
		if body[i].op == opEq {
			left, right := body[i].arguments[0], body[i].arguments[1]
			if left == right {
				continue
			}
			if tellsMore(left, right) {
				body[i].arguments = []Value{right, left}
			}
		}
		written := string(body[i].appendTo(nil, nil))
		if !slices.Contains(seen, written) {
			seen = append(seen, written)
			kept = append(kept, body[i])
		}
	}
	return kept
}

// dropClock removes the demand that there is a clock, if another literal makes it, too.
func dropClock(body []literal) []literal {
	if !slices.ContainsFunc(body, func(l literal) bool { return l.op != opTime && l.needsClock() }) {
		return body
	}
	return slices.DeleteFunc(body, func(l literal) bool { return l.op == opTime })
}

// needsClock reports whether the literal can hold only if there is a clock. An each does
// not need one, because there may be no tuple; nor does an equality that only gives a
// variable a value.
func (l *literal) needsClock() bool {
	switch {
	case l.op == opTime:
		return true
	case l.isEach():
		return false
	case l.op.relational() && l.arguments[0] == l.arguments[1]:
		return false
	case l.op == opEq && (l.arguments[0].kind == kindVariable || l.arguments[1].kind == kindVariable):
		return false
	}
	needs := false
	l.terms(func(term Value) { needs = needs || term.kind == kindNow })
	return needs
}
