// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"slices"

	"shai.dev/monitor/internal/bug"
)

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
		if extended, ok := o.bind(l.asked(), values, bindings); ok && o.clause(body[1:], extended) {
			return true
		}
	}
	return false
}

// asked are the terms to which a literal gives values: a tuple's place comes last.
func (l *literal) asked() []Value {
	if l.content == nil || !l.content.positioned || l.content.isRange() {
		return l.arguments
	}
	return append(slices.Clone(l.arguments), l.content.offset)
}

// tuples are those among the facts that have the literal's form, and if it asks for places,
// one.
func (l *literal) tuples(facts []Fact) (all [][]Value) {
	for _, fact := range facts {
		if fact.Relation != l.content.relation || len(fact.Arguments) != len(l.arguments) ||
			l.content.positioned && !fact.Positioned {
			continue
		}
		values := slices.Clone(fact.Arguments)
		if len(l.asked()) > len(l.arguments) {
			values = append(values, Integer(fact.Offset))
		}
		all = append(all, values)
	}
	return all
}

// said are the facts of the conduit that a literal names.
func (o oracle) said(conduit Value) (facts []Fact) {
	for _, fact := range o.facts {
		if String(fact.Conduit) == conduit {
			facts = append(facts, fact)
		}
	}
	return facts
}

// written are the tuples of the write, if it is to the conduit that a literal names.
func (o oracle) written(conduit Value) (facts []Fact, ok bool) {
	if o.environment.Update == nil || conduit != String(o.environment.Target.Name) {
		return nil, false
	}
	return o.environment.Update.Facts, true
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
	case opContentType:
		return one(target.Type)
	case opLength:
		if target.Measured {
			return [][]Value{{Integer(target.Length)}}
		}
		return nil
	case opNewLength:
		if o.environment.Update != nil {
			return [][]Value{{Integer(o.environment.Update.NewLength)}}
		}
		return nil
	case opSays:
		return l.tuples(o.said(o.value(l.content.conduit, bindings)))
	case opWillsay:
		facts, _ := o.written(o.value(l.content.conduit, bindings))
		return l.tuples(facts)
	case opEach, opEachWillsay:
		if o.each(l, bindings) {
			for _, term := range l.asked()[len(l.arguments):] {
				arguments = append(arguments, o.value(term, bindings))
			}
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

// each fails where nothing that could say something is named. Each of a write also fails if the
// write has anything else.
func (o oracle) each(l literal, bindings []Value) bool {
	conduit := o.value(l.content.conduit, bindings)
	facts, ok := o.said(conduit), conduit.kind == StringValue
	if l.op == opEachWillsay {
		facts, ok = o.written(conduit)
	}
	from, to := o.value(l.content.offset, bindings), o.value(l.content.rangeEnd, bindings)
	if l.content.isRange() && (from.kind != IntegerValue || to.kind != IntegerValue) {
		return false
	}
	for _, fact := range facts {
		if l.content.isRange() && fact.Positioned && (fact.Offset < from.number || fact.Offset >= to.number) {
			continue
		}
		tuples := l.tuples([]Fact{fact})
		if len(tuples) == 0 {
			ok = ok && l.op == opEach
			continue
		}
		extended, matches := o.bind(l.asked(), tuples[0], bindings)
		if matches && !o.clause(l.content.condition, extended) || !matches && l.op == opEachWillsay {
			return false
		}
	}
	return ok
}
