// SPDX-License-Identifier: BSD-2-Clause

package policy

import (
	"cmp"
	"slices"
	"strings"
)

// FactPlace is a place of the facts of one relation.
type FactPlace struct {
	Conduit    string // "" for any
	Relation   string
	Arguments  int  // as many as the facts have
	Place      int  // the number of the argument, from 0; [ConduitPlace] for the conduit
	Positioned bool // facts with an offset, which is of interest too
}

// ConduitPlace is the place of a fact's conduit.
const ConduitPlace = -1

// Compare orders places.
func (f FactPlace) Compare(other FactPlace) int {
	positioned := func(f FactPlace) int {
		if f.Positioned {
			return 1
		}
		return 0
	}
	return cmp.Or(strings.Compare(f.Conduit, other.Conduit), strings.Compare(f.Relation, other.Relation),
		cmp.Compare(f.Arguments, other.Arguments), cmp.Compare(f.Place, other.Place),
		cmp.Compare(positioned(f), positioned(other)))
}

// NameUse says what a policy can find out about names of conduits. Two conduits with this policy
// are the same to all policies of a set if the following holds.
//
//   - Tells is false, or decisions that it concerns are made for each conduit by itself.
//   - Neither name is in Constants of a policy of the set, or a value of a parameter.
//   - At each place of Own of this policy, and of Open of all policies of the set, the facts that
//     have the one name there are those that have the other name there.
//
// A proof about one conduit then is one about the other, with the other name in the places of
// `this`. It can have the name in other places only if a variable has got it from a fact, and
// these facts are the same for both.
type NameUse struct {
	// Tells says that the policy can compare its conduit's name, number or length with anything: it uses `this` other than to look for it among facts, or asks for them in its
	// read or update rule.
	Tells bool
	// Own are the places in which the policy looks for the name of its conduit, sorted.
	Own []FactPlace
	// Open are the places from which it takes values, sorted.
	Open []FactPlace
	// Constants are the texts in it, sorted.
	Constants []string
}

// NameUse returns what the template's policies can find out about names of conduits.
func (t *Template) NameUse() NameUse {
	w := &nameWalk{}
	for _, clauses := range [][]lowered{t.read, t.update} {
		for _, clause := range clauses {
			w.body(clause.body, nil)
		}
	}
	w.exits = true
	w.obligations(t.obligations)
	slices.SortFunc(w.use.Own, FactPlace.Compare)
	slices.SortFunc(w.use.Open, FactPlace.Compare)
	slices.Sort(w.use.Constants)
	w.use.Own, w.use.Open = slices.Compact(w.use.Own), slices.Compact(w.use.Open)
	w.use.Constants = slices.Compact(w.use.Constants)
	return w.use
}

// nameWalk collects how literals use names.
type nameWalk struct {
	use   NameUse
	exits bool // of conduits that are written, whose names are not `this`
}

func (w *nameWalk) obligations(obligations []loweredObligation) {
	for _, o := range obligations {
		for _, exit := range o.exits {
			w.body(exit.condition.body, nil)
			w.obligations(exit.behind)
		}
	}
}

// body looks at a conjunction, which is the condition of around unless that is nil.
func (w *nameWalk) body(body []literal, around *literal) {
	for i := range body {
		l := &body[i]
		l.allTerms(func(term Value) {
			if term.kind == StringValue {
				w.use.Constants = append(w.use.Constants, term.text)
			}
		})
		switch l.op {
		case opSays, opEach:
			w.facts(l)
		case opNeq:
			w.differs(l, around)
		case opName, opID, opLength, opNewLength, opHasPolicy, opExists:
			w.use.Tells = w.use.Tells || !w.exits || l.namesThis()
		case opWillsay, opEachWillsay:
			w.use.Tells = w.use.Tells || slices.Contains(l.arguments, Value{kind: kindThis})
		default:
			w.use.Tells = w.use.Tells || l.namesThis()
		}
		if l.content != nil {
			w.body(l.content.condition, l)
		}
	}
}

// facts records the places of a literal about facts.
func (w *nameWalk) facts(l *literal) {
	place := FactPlace{Relation: l.content.relation, Arguments: len(l.arguments), Positioned: l.content.positioned}
	if l.content.conduit.kind == StringValue {
		place.Conduit = l.content.conduit.text
	}
	add := func(term Value, at int) {
		place.Place = at
		switch term.kind {
		case kindThis:
			w.use.Own = append(w.use.Own, place)
		case kindVariable:
			w.use.Open = append(w.use.Open, place)
		}
	}
	add(l.content.conduit, ConduitPlace)
	for i, argument := range l.arguments {
		add(argument, i)
	}
}

// differs looks at neq. `each in L says t(X) { neq(X, this), … }` holds only if there is no
// t(this): it looks for the name in the place of X.
func (w *nameWalk) differs(l *literal, around *literal) {
	this := Value{kind: kindThis}
	variable := l.arguments[0]
	switch this {
	case l.arguments[0]:
		variable = l.arguments[1]
	case l.arguments[1]:
	default:
		return
	}
	isLocal := around != nil && around.op == opEach && variable.kind == kindVariable &&
		int(variable.number) >= around.content.localFrom && int(variable.number) < around.content.patternTo
	if !isLocal || !slices.Contains(around.arguments, variable) {
		w.use.Tells = true
		return
	}
	looked := *around
	looked.arguments = slices.Clone(around.arguments)
	for i, argument := range looked.arguments {
		if argument == variable {
			looked.arguments[i] = this
		}
	}
	w.facts(&looked)
}
