// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// Dependencies say on which parts of the state the decisions about a policy depend. They are
// taken from the compiled clauses, and from nothing else: who wants to know what a change can
// alter asks here.
type Dependencies struct {
	Read, Update Uses
	Exits        Uses // the conditions after `until`
}

// Uses are what the literals of some clauses ask for.
type Uses struct {
	Facts []FactUse
	// Compares reports an isAsRestrictive among the conditions: what other rules ask for
	// counts, too, and for them a fact more can be an obstacle.
	Compares bool
	// Conduits reports that it asks for the policy of a conduit by its number, or for whether
	// there is such a conduit.
	Conduits bool
	Clock    bool // timeIs
}

// FactUse is a literal about tuples.
type FactUse struct {
	Conduit  string // "" if the literal does not name it
	Relation string
	Arity    int
	// Each reports that the literal is an each, which a tuple less can satisfy. Others are
	// satisfied by a tuple more.
	Each bool
}

// Concerns reports whether the literal asks for facts such as this one.
func (u FactUse) Concerns(fact Fact) bool {
	return u.Relation == fact.Relation && u.Arity == len(fact.Arguments) &&
		(u.Conduit == "" || u.Conduit == fact.Conduit)
}

// Concern reports whether one of the literals asks for facts such as this one.
func (u Uses) Concern(fact Fact) bool {
	return slices.ContainsFunc(u.Facts, func(use FactUse) bool { return use.Concerns(fact) })
}

// SpeaksOfConduits reports whether a decision can depend on the policies of conduits that are
// not part of the flow.
func (d Dependencies) SpeaksOfConduits() bool {
	return d.Read.Conduits || d.Update.Conduits || d.Exits.Conduits
}

// Dependencies returns what the policy's rules ask for, with any arguments.
func (t *Template) Dependencies() Dependencies {
	var d Dependencies
	for _, clause := range t.read {
		d.Read.add(clause.body)
	}
	for _, clause := range t.update {
		d.Update.add(clause.body)
	}
	eachExit(t.obligations, func(condition lowered) { d.Exits.add(condition.body) })
	return d
}

// eachExit calls visit with the condition of every exit.
func eachExit(obligations []loweredObligation, visit func(condition lowered)) {
	for _, o := range obligations {
		for _, exit := range o.exits {
			visit(exit.condition)
			eachExit(exit.behind, visit)
		}
	}
}

func (u *Uses) add(body []literal) {
	for i := range body {
		l := &body[i]
		switch l.op {
		case opSays, opEach:
			use := FactUse{Relation: l.content.relation, Arity: len(l.arguments), Each: l.op == opEach}
			if l.content.conduit.kind == StringValue {
				use.Conduit = l.content.conduit.text
			}
			if !slices.Contains(u.Facts, use) {
				u.Facts = append(u.Facts, use)
			}
		case opAtLeast:
			u.Compares = true
		case opHasPolicy, opExists:
			u.Conduits = true
		case opTime:
			u.Clock = true
		}
		if l.content != nil {
			u.add(l.content.condition)
		}
	}
}
