// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"fmt"
	"slices"
)

// denial is the reason of a failure: first in a person's words, then precisely.
type denial struct{ sentence, detail string }

func (d denial) String() string {
	if d.detail == "" {
		return d.sentence
	}
	return d.sentence + " [" + d.detail + "]"
}

// saying runs the search for a denial's words. The search may prove things again to see
// what fails, without an effect on the decision.
func (p *prover) saying(find func() string) string {
	if p.budget.err != nil {
		return "the decision takes too many steps"
	}
	tree, budget, conditions := p.tree, *p.budget, len(p.conditions)
	p.tree, p.budget.steps = nil, sayingSteps
	defer func() {
		p.tree, p.conditions = tree, p.conditions[:conditions]
		*p.budget = budget
	}()
	return find()
}

// fails proves something that is expected to fail, and records where it does.
func (p *prover) fails(prove func() bool) bool {
	p.failure.literal = nil
	return !prove()
}

// unread returns why a taint may not be mixed with data under a duty.
func (p *prover) unread(taint Label, demanded duty) string {
	rule := demanded.rule()
	for _, held := range taint.duties {
		if !p.fails(func() bool { return p.ruleAtLeast(held.rule(), rule) }) {
			p.fails(func() bool { return p.covers(held, demanded) })
			return fmt.Sprintf("what derives from it is protected %s (%s), what the task writes only %s (%s)",
				demanded.lasting(), demanded.obligation.policy.title(), held.lasting(), held.obligation.policy.title())
		}
	}
	only := rule.onlySome("read", "read")
	switch {
	case rule.Whom() == "nobody":
		return only
	case len(taint.duties) == 0:
		return only + "; the task may pass what it reads on to anybody"
	}
	held := taint.duties[0]
	p.fails(func() bool { return p.ruleAtLeast(held.rule(), rule) })
	return only + "; " + p.mismatch(held.rule().soleReader(), "what the task holds is for "+held.rule().Whom())
}

// unkept returns why a written conduit does not keep a taint's duty.
func (p *prover) unkept(held duty, target Conduit) string {
	read := Rule{target.Policy, readRule, target.Name}
	keeps := !p.fails(func() bool { return p.ruleAtLeast(read, held.rule()) })
	title := " (" + held.obligation.policy.title() + ")"
	if keeps {
		p.fails(func() bool { return p.covered(target.Label(), held) })
		lasting := "as long as it stays there"
		if len(target.Label().duties) > 0 {
			lasting = "only " + target.Label().duties[0].lasting()
		}
		return "what the task writes is protected " + held.lasting() + title + ", what derives from it there " +
			lasting + " (" + read.owner().title() + ")"
	}
	return "what the task writes is for " + held.rule().Whom() + " only" + title + "; " + read.Whom() +
		" may read it (" + read.owner().title() + ")"
}

// unmetRule returns why the session does not satisfy a rule.
func (p *prover) unmetRule(rule Rule, verb, participle string) string {
	p.fails(func() bool { return p.evaluate(rule) })
	only, session := rule.onlySome(verb, participle), p.environment.Session
	var said string
	switch {
	case rule.Whom() == "nobody":
	case session == nil || session.Principal == "":
		said = p.mismatch("", "nobody is authenticated")
	case p.failure.literal != nil && p.failure.literal.op == opRegion && session.Region == "":
		said = "the region of " + session.Principal + " is not known"
	case p.failure.literal != nil && p.failure.literal.op == opRegion:
		said = session.Principal + " is in region " + session.Region
	default:
		said = p.mismatch(session.Principal, "")
	}
	if said == "" {
		return only
	}
	return only + "; " + said
}

// soleReader returns the only reader that a rule names, "" if there are others.
func (r Rule) soleReader() string {
	clauses := r.compiled().clauses
	if len(clauses) != 1 {
		return ""
	}
	return describe(&clauses[0], r.this).reader.Text()
}

// mismatch returns the part of the nearest failure that is about the reader or the facts,
// or else otherwise.
func (p *prover) mismatch(reader, otherwise string) string {
	f := &p.failure
	if f.literal == nil {
		return otherwise
	}
	switch l := f.literal; l.op {
	case opKey:
		if name, known := f.named(l.arguments[0]); known && reader != "" {
			return reader + " is not " + name
		}
	case opRegion:
		if region, known := f.named(l.arguments[0]); known && reader != "" {
			return reader + " is not known to be in region " + region
		}
		if reader != "" {
			return "the region of " + reader + " is not known"
		}
		return "the region is not known"
	case opSays:
		if len(l.arguments) == 1 {
			if said := f.entry(l.arguments[0], "does not list"); said != "" {
				return said
			}
		}
		return "there is no fact " + f.text()
	case opEach:
		if excluded := l.excludes(); excluded != nil {
			if said := f.entry(*excluded, "lists"); said != "" {
				return said
			}
		}
		if f.breaking.each != nil {
			return f.breaking.fact.String()
		}
	case opLt, opLe, opGt, opGe:
		if said := l.untimely(); said != "" {
			return said
		}
	case opIP, opPrefix:
		return "the session's address is another one"
	case opKind, opInternal, opName, opID, opContentType:
		return "this is another conduit"
	}
	return otherwise
}

// named returns a term's value in plain words, and whether it is known.
func (f *failure) named(term Value) (string, bool) {
	if term.kind == kindVariable && int(term.number) < len(f.bindings) {
		term = f.bindings[term.number]
	}
	if term.kind == kindThis {
		return "it", true
	}
	d := &description{clause: f.clause, this: f.owner.this}
	return d.plain(term), term.concrete()
}

// entry says that the literal's conduit lists a term, or does not list it. It returns ""
// if one of them is not known.
func (f *failure) entry(term Value, verb string) string {
	content := f.literal.content
	conduit, known := f.named(content.conduit)
	name, bound := f.named(term)
	if !known || !bound {
		return ""
	}
	return `"` + conduit + `" ` + verb + " " + name + " as " + content.relation
}

// untimely returns, for a comparison with the clock, that it is too late or too early. It
// returns "" for any other literal.
func (l *literal) untimely() string {
	ends := l.op == opLt || l.op == opLe
	switch (Value{kind: kindNow}) {
	case l.arguments[0]:
	case l.arguments[1]:
		ends = !ends
	default:
		return ""
	}
	if ends {
		return "that time is over"
	}
	return "that time has not come"
}

// remedy returns the fact that, added or removed, would make the nearest failure hold.
func (f *failure) remedy() (change FactChange, found bool) {
	if f.literal == nil || f.literal.content == nil || f.literal.content.positioned {
		return FactChange{}, false
	}
	if f.literal.op == opEach {
		change.Fact = f.breaking.fact
		change.Fact.Arguments = slices.Clone(change.Fact.Arguments) // the prover uses its buffer again
		return change, f.breaking.each != nil
	}
	if f.literal.op != opSays {
		return FactChange{}, false
	}
	value := func(term Value) Value {
		switch {
		case term.kind == kindVariable && int(term.number) < len(f.bindings):
			return f.bindings[term.number]
		case term.kind == kindThis:
			return String(f.owner.this)
		}
		return term
	}
	l := f.literal
	change.Add = true
	change.Fact = Fact{Conduit: value(l.content.conduit).Text(), Relation: l.content.relation}
	for _, argument := range l.arguments {
		change.Fact.Arguments = append(change.Fact.Arguments, value(argument))
	}
	return change, change.Fact.check() == nil
}

// FactChange is the addition or removal of a fact.
type FactChange struct {
	Add  bool // false: remove it
	Fact Fact
}

// changed is a state in which a fact has been added or removed.
type changed struct {
	State
	change FactChange
}

func (c changed) Has(pattern Pattern) bool {
	found := false
	c.Lookup(pattern, func(Fact) bool { found = true; return false })
	return found
}

func (c changed) Lookup(pattern Pattern, yield func(Fact) bool) {
	stopped := false
	c.State.Lookup(pattern, func(fact Fact) bool {
		if c.change.Fact.same(fact) {
			return true
		}
		stopped = !yield(fact)
		return !stopped
	})
	if c.change.Add && !stopped && pattern.matches(c.change.Fact) && pattern.Look() {
		yield(c.change.Fact)
	}
}

func (f Fact) same(other Fact) bool {
	return f.Conduit == other.Conduit && f.Relation == other.Relation &&
		NewTuple(f.Arguments...) == NewTuple(other.Arguments...)
}

// matches reports whether a pattern selects a fact without an offset.
func (p Pattern) matches(fact Fact) bool {
	return !p.Positioned && (p.Conduit == "" || p.Conduit == fact.Conduit) && p.Relation == fact.Relation &&
		len(p.Arguments) == len(fact.Arguments) && p.selects(fact)
}
