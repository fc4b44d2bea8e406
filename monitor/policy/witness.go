// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"net/netip"
	"time"
)

// Witness is a session, a state and a conduit, in which one rule allows what another one does
// not.
type Witness struct {
	Session Session
	Facts   []Fact
	Now     time.Time // zero if no literal asks for the time
	Target  Conduit   // name, kind and so on, as far as a literal asks for them
	// NewLength is that of the target after the write, in bytes; 0 if no literal asks for it.
	NewLength int64
}

// witness looks for a case that a clause of the first rule allows and the second rule does
// not. It puts made-up values in the place of variables, so it may find none though there
// is one. What it returns was evaluated by both rules.
func witness(c *clause, first, second Rule) *Witness {
	w := newWitnessMaker(c, first)
	for i := range c.body {
		if !w.satisfy(&c.body[i]) {
			return nil
		}
	}
	if !w.holds(first) {
		return nil
	}
	if w.holds(second) && !w.refute(second) {
		return nil
	}
	found := w.Witness
	return &found
}

// witnessMaker makes a case in which a clause holds.
type witnessMaker struct {
	Witness
	rule     Rule
	clause   *clause
	bindings []Value
}

func newWitnessMaker(c *clause, of Rule) *witnessMaker {
	w := &witnessMaker{rule: of, clause: c, bindings: make([]Value, c.variables)}
	w.Target.Name = of.this
	return w
}

// Values in the place of what a clause leaves open.
var (
	somebody  = String("somebody")
	somewhere = String("somewhere")
	something = String("something")
	address   = String("192.0.2.1") // of TEST-NET-1, RFC 5737
	someday   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func (w *witnessMaker) value(term Value) Value {
	switch term.kind {
	case kindVariable:
		return w.bindings[term.number]
	case kindThis:
		return String(w.rule.this)
	case kindNow:
		if w.Now.IsZero() {
			w.Now = someday
		}
		return Time(w.Now)
	}
	return term
}

// take returns a term's value, which is fresh if there is none yet.
func (w *witnessMaker) take(term, fresh Value) Value {
	value := w.value(term)
	if value.kind == Wildcard {
		w.bindings[term.number] = fresh
		return fresh
	}
	return value
}

// satisfy makes a literal hold, if it knows how. A literal that it does not know is left to
// the evaluation afterwards.
func (w *witnessMaker) satisfy(l *literal) bool {
	switch {
	case l.op == opSays:
		return w.state(l)
	case l.op.speaksOfFlow():
		return w.property(l)
	case l.op.relational():
		w.relate(l)
	case l.op.arithmetic() || l.op == opConcat:
		return w.compute(l)
	}
	return true
}

// property sets what a literal about the session or the target asks for.
func (w *witnessMaker) property(l *literal) bool {
	if l.op == opInternal {
		w.Target.Internal = true
		return true
	}
	term := l.arguments[0]
	switch l.op {
	case opKey:
		return w.identify(w.take(term, somebody).Text())
	case opRegion:
		w.Session.Region = w.take(term, somewhere).Text()
	case opIP:
		ip, err := netip.ParseAddr(w.take(term, address).Text())
		w.Session.IP = ip
		return err == nil
	case opName:
		return w.name(term)
	case opID:
		w.Target.ID = w.take(term, Integer(1)).Number()
	case opKind:
		kind, err := ParseConduitKind(w.take(term, String(FileConduit.String())).Text())
		w.Target.Kind = kind
		return err == nil
	case opContentType:
		w.Target.Type = w.take(term, something).Text()
	case opLength:
		w.Target.Length, w.Target.Measured = w.take(term, Integer(0)).Number(), true
	case opNewLength:
		w.NewLength = w.take(term, Integer(0)).Number()
	}
	return true
}

// name gives the target a name. An update is of the policy's own conduit.
func (w *witnessMaker) name(term Value) bool {
	if own := String(w.rule.this); w.rule.name == updateRule {
		return w.take(term, own) == own
	}
	w.Target.Name = w.take(term, something).Text()
	return true
}

// identify authenticates the session. It has one name: nothing gives it a key (docs/policies.md).
func (w *witnessMaker) identify(name string) bool {
	if w.Session.Principal == "" {
		w.Session.Principal = name
	}
	return w.Session.Principal == name
}

// state adds the fact that a literal asks for.
func (w *witnessMaker) state(l *literal) bool {
	conduit := w.value(l.content.conduit)
	if conduit.kind != StringValue || conduit.text == "" {
		return false
	}
	fact := Fact{Conduit: conduit.text, Relation: l.content.relation}
	for _, argument := range l.arguments {
		fact.Arguments = append(fact.Arguments, w.take(argument, something))
	}
	if l.content.positioned {
		fact.Positioned, fact.Offset = true, w.take(l.content.offset, Integer(0)).Number()
	}
	w.Facts = append(w.Facts, fact)
	return fact.check() == nil
}

// relate moves the clock to where a relation with it holds.
func (w *witnessMaker) relate(l *literal) {
	op, other := l.op, l.arguments[1]
	if l.arguments[0].kind != kindNow {
		op, other = mirrored(op), l.arguments[0]
		if l.arguments[1].kind != kindNow {
			return
		}
	}
	instant := w.value(other)
	if instant.kind != TimeValue {
		w.Now = someday
		return
	}
	switch op {
	case opLt, opNeq:
		w.Now = instant.Instant().Add(-time.Hour)
	case opGt:
		w.Now = instant.Instant().Add(time.Hour)
	default:
		w.Now = instant.Instant()
	}
}

// compute binds what a computation leaves open.
func (w *witnessMaker) compute(l *literal) bool {
	for _, guess := range []Value{{}, something} {
		x, y, z := w.value(l.arguments[0]), w.value(l.arguments[1]), w.value(l.arguments[2])
		if guess.kind != Wildcard && z.kind == Wildcard {
			z = guess
		}
		values, ok := compute(l.op, x, y, z)
		if !ok {
			continue
		}
		for i, term := range l.arguments {
			w.take(term, values[i])
		}
		return true
	}
	return false
}

// holds evaluates a rule in the case.
func (w *witnessMaker) holds(rule Rule) bool {
	_, holds := w.evaluate(rule)
	return holds
}

// evaluate also returns the facts that would break the rule: what an each of the clause that
// holds excludes.
func (w *witnessMaker) evaluate(rule Rule) (breaking []Fact, holds bool) {
	facts := NewFactBase()
	for _, fact := range w.Facts {
		if _, err := facts.Add(fact); err != nil {
			return nil, false
		}
	}
	environment := Environment{Session: &w.Session, Now: w.Now, Target: &w.Target,
		Update: &Update{NewLength: w.NewLength}}
	p := newProver(StateOf(facts, NewConduitTable()), &environment)
	defer p.release()
	if !p.evaluate(rule) || p.budget.err != nil {
		return nil, false
	}
	for i := range p.clause.body {
		l := &p.clause.body[i]
		excluded := l.excludes()
		if !l.isEach() || excluded == nil {
			continue
		}
		fact := Fact{Conduit: p.value(l.content.conduit).Text(), Relation: l.content.relation,
			Arguments: []Value{p.value(*excluded)}}
		if fact.check() == nil {
			breaking = append(breaking, fact)
		}
	}
	return breaking, true
}

// refute adds a fact that makes the second rule fail and leaves the first one as it is.
func (w *witnessMaker) refute(second Rule) bool {
	breaking, _ := w.evaluate(second)
	known := w.Facts
	for _, fact := range breaking {
		w.Facts = append(known[:len(known):len(known)], fact)
		if w.holds(w.rule) && !w.holds(second) {
			return true
		}
	}
	w.Facts = known
	return false
}
