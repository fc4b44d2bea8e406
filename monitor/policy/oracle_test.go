// SPDX-License-Identifier: BSD-2-Clause

package policy

import "shai.dev/monitor/internal/bug"

// oracle evaluates rules as naively as possible, as a check on the prover: facts are
// a list that is walked from end to end, there is no trail and no index.
type oracle struct {
	facts       []Fact
	environment Environment
	this        string
}

func (o oracle) rule(r Rule) bool {
	o.this = r.this
	for _, c := range r.compiled().clauses {
		if o.clause(c.body, make([]Value, c.variables)) {
			return true
		}
	}
	return false
}

func (o oracle) value(term Value, bindings []Value) Value {
	switch term.kind {
	case kindVariable:
		return bindings[term.number]
	case kindThis:
		return String(o.this)
	case kindNow:
		return Time(o.environment.Now)
	}
	return term
}

// bind returns the bindings after making terms equal to values, or false.
func (o oracle) bind(terms, values, bindings []Value) ([]Value, bool) {
	bindings = append([]Value(nil), bindings...)
	for i, term := range terms {
		switch current := o.value(term, bindings); {
		case current.kind == Wildcard && values[i].kind != Wildcard:
			bindings[term.number] = values[i]
		case current != values[i]:
			return nil, false
		}
	}
	return bindings, true
}

func (o oracle) clause(body []literal, bindings []Value) bool {
	if len(body) == 0 {
		return true
	}
	l := body[0]
	for _, values := range o.solutions(l, bindings) {
		if extended, ok := o.bind(l.arguments, values, bindings); ok && o.clause(body[1:], extended) {
			return true
		}
	}
	return false
}

// solutions lists argument values for which the literal holds.
func (o oracle) solutions(l literal, bindings []Value) [][]Value {
	var arguments []Value
	for _, argument := range l.arguments {
		arguments = append(arguments, o.value(argument, bindings))
	}
	session, target := o.environment.Session, o.environment.Target
	one := func(text string) [][]Value {
		if text == "" {
			return nil
		}
		return [][]Value{{String(text)}}
	}
	switch l.op {
	case opKey:
		return one(session.Principal)
	case opRegion:
		return one(session.Region)
	case opIP:
		return one(session.IP.String())
	case opKind:
		return one(target.Kind.String())
	case opName:
		return one(target.Name)
	case opID:
		if target.ID != 0 {
			return [][]Value{{Integer(target.ID)}}
		}
		return nil
	case opInternal:
		if target.Internal {
			return [][]Value{nil}
		}
		return nil
	case opType:
		if name, ok := kindName(arguments[0]); ok {
			return [][]Value{{arguments[0], name}}
		}
		return nil
	case opTime:
		return [][]Value{{Time(o.environment.Now)}}
	case opSays:
		var all [][]Value
		for _, fact := range o.facts {
			if fact.Relation == l.content.relation && len(fact.Arguments) == len(l.arguments) &&
				String(fact.Conduit) == o.value(l.content.conduit, bindings) {
				all = append(all, fact.Arguments)
			}
		}
		return all
	case opEach:
		if o.each(l, bindings) {
			return [][]Value{arguments}
		}
		return nil
	case opPrefix:
		if within(arguments[0], arguments[1]) {
			return [][]Value{arguments}
		}
		return nil
	}
	if l.op.relational() {
		for i := range arguments {
			if l.op == opEq && arguments[i].kind == Wildcard {
				arguments[i] = arguments[1-i]
			}
		}
		if relate(l.op, arguments[0], arguments[1]) {
			return [][]Value{arguments}
		}
		return nil
	}
	if !l.op.arithmetic() && l.op != opConcat {
		bug.Found("the oracle does not know %s", signatures[l.op].name)
	}
	if values, ok := compute(l.op, arguments[0], arguments[1], arguments[2]); ok {
		return [][]Value{values[:]}
	}
	return nil
}

// each fails where nothing that could say something is named.
func (o oracle) each(l literal, bindings []Value) bool {
	if o.value(l.content.conduit, bindings).kind != StringValue {
		return false
	}
	for _, fact := range o.facts {
		if fact.Relation != l.content.relation || len(fact.Arguments) != len(l.arguments) ||
			String(fact.Conduit) != o.value(l.content.conduit, bindings) {
			continue
		}
		if extended, ok := o.bind(l.arguments, fact.Arguments, bindings); ok &&
			!o.clause(l.content.condition, extended) {
			return false
		}
	}
	return true
}
