// SPDX-License-Identifier: BSD-2-Clause

package policy

import "slices"

// takeConditions copies the conditions out, sorted and each once.
func (p *prover) takeConditions() []Condition {
	if len(p.conditions) == 0 {
		return nil
	}
	return append(p.environment.Conditions[:0], sortConditions(p.conditions)...)
}

// planning is what it costs to plan a literal of a case, in bytes.
const planning = 1 << 10

// maxSplits limits how often one clause is split into cases.
const maxSplits = 2

// ruleAtLeast shows that every clause of r1 implies some clause of r2.
func (p *prover) ruleAtLeast(r1, r2 Rule) bool {
	first, second := r1.compiled(), r2.compiled()
	if r1.name == r2.name && r1.owner().id == r2.owner().id && (r1.this == r2.this || !first.mentionsThis()) {
		return true
	}
	start := len(p.conditions)
	for i := range first.clauses {
		if !p.implied(&first.clauses[i], r1, second, r2, 0) {
			p.conditions = p.conditions[:start]
			return false
		}
	}
	return true
}

// implied shows that the premise, a clause of owner1, implies one of the conclusions,
// clauses of owner2. If this cannot be shown at once, it tries to show it case by case,
// for each tuple that the state has for a fact in the premise.
func (p *prover) implied(premise *clause, owner1 Rule, conclusions *rule, owner2 Rule, splits int) bool {
	node := p.enterClause("everybody with ", premise, owner1)
	defer p.leave(node)
	start := len(p.conditions)
	for i := range conclusions.clauses {
		if p.follows(premise, owner1, &conclusions.clauses[i], owner2) {
			return node.holds()
		}
		p.conditions = p.conditions[:start]
	}
	if splits < maxSplits {
		for i := range premise.body {
			if p.splitOn(&premise.body[i], premise, owner1, conclusions, owner2, splits) {
				return node.holds()
			}
			p.conditions = p.conditions[:start]
		}
	}
	return false
}

// follows shows one conclusion from one premise.
func (p *prover) follows(premise *clause, owner1 Rule, conclusion *clause, owner2 Rule) bool {
	p.comparing = true
	p.hypotheses = append(p.hypotheses[:0], hypothesis{premise.body, frozenValues[:premise.variables], owner1.this,
		owner1.owner()})
	p.open(owner2, conclusion)
	proved := p.prove(conclusion.body, 0, nil)
	p.explainClause(conclusion, owner2, proved)
	return proved
}

// splitOn replaces a fact of the premise by every tuple for it in the state, and shows
// the conclusion for each. It is a condition that no other tuple is added.
func (p *prover) splitOn(l *literal, premise *clause, owner1 Rule, conclusions *rule, owner2 Rule, splits int) bool {
	if l.op != opSays || l.content.positioned {
		return false
	}
	h := hypothesis{premise.body, frozenValues[:premise.variables], owner1.this, owner1.owner()}
	conduit := h.value(l.content.conduit)
	if conduit.kind != StringValue || conduit.text == "" {
		return false
	}
	pattern := Pattern{Conduit: conduit.text, Relation: l.content.relation, Arguments: make([]Value, len(l.arguments))}
	open := false
	for i, argument := range l.arguments {
		pattern.Arguments[i] = known(h.value(argument))
		open = open || argument.kind == kindVariable
	}
	if !open {
		return false
	}
	digest := newDigest()
	all := true
	p.lookup(pattern, func(fact Fact) bool {
		digest.add(fact)
		all = digest.count <= maxCaseAnalysis && p.budget.charge(len(digest.packed)+planning*len(premise.body)) &&
			p.caseHolds(l, fact, premise, owner1, conclusions, owner2, splits)
		return all
	})
	if !all || p.budget.err != nil {
		return false
	}
	condition := Condition{Kind: FactsUnchanged, Conduit: pattern.Conduit, Relation: pattern.Relation,
		Tuple: NewTuple(pattern.Arguments...), Digest: digest.String()}
	if digest.count == 0 {
		condition.Kind, condition.Digest = FactAbsent, ""
	}
	p.require(condition)
	return true
}

// caseHolds shows the conclusion from the premise with a fact's values put in.
func (p *prover) caseHolds(l *literal, fact Fact, premise *clause, owner1 Rule, conclusions *rule, owner2 Rule,
	splits int) bool {
	var bindings []binding
	for i, argument := range l.arguments {
		switch argument.kind {
		case kindVariable:
			bindings = append(bindings, binding{argument, fact.Arguments[i]})
		case kindNow:
			return false // it is not known whether the clock will ever show this instant
		}
	}
	for i, first := range bindings {
		for _, second := range bindings[:i] {
			if first.variable == second.variable && first.value != second.value {
				return true // the tuple does not match: no such case
			}
		}
	}
	body, satisfiable := normalise(substitute(slices.Clone(premise.body), bindings))
	if !satisfiable {
		return true
	}
	plan, ordered := planned(body, premise.names)
	instance := plan.finish(ordered, premise.position)
	return p.implied(&instance, owner1, conclusions, owner2, splits+1)
}

// labelAtLeast shows that each obligation of l2 is covered by one of l1.
func (p *prover) labelAtLeast(l1, l2 Label) bool {
	start := len(p.conditions)
	for _, demanded := range l2.duties {
		if !p.covered(l1, demanded) {
			p.conditions = p.conditions[:start]
			return false
		}
	}
	return true
}

func (p *prover) covered(label Label, demanded duty) bool {
	node := p.enterDuty("demanded: ", demanded)
	defer p.leave(node)
	for _, held := range label.duties {
		if p.covers(held, demanded) {
			return node.holds()
		}
	}
	return false
}

// covers shows that held forbids the data to everybody to whom demanded forbids it, and
// for at least as long.
func (p *prover) covers(held, demanded duty) bool {
	if held.equal(demanded) {
		return true
	}
	if !p.step() {
		return false
	}
	start := len(p.conditions)
	ok := p.ruleAtLeast(held.rule(), demanded.rule())
	for i := range held.obligation.exits {
		ok = ok && p.exitHarmless(&held.obligation.exits[i], held, demanded)
	}
	if !ok {
		p.conditions = p.conditions[:start]
	}
	return ok
}

// exitHarmless shows that whenever held's exit is open, demanded has ended too, or the
// obligations behind the exit still keep it.
func (p *prover) exitHarmless(way *exit, held, demanded duty) bool {
	start := len(p.conditions)
	behind := labelOf(way.behind, held.this)
	for i := range demanded.obligation.exits {
		other := &demanded.obligation.exits[i]
		implied := way.meaning.isSame(other.meaning) ||
			p.implied(way.clause(), held.rule(), other.condition, demanded.rule(), 0)
		if implied && p.labelAtLeast(behind, labelOf(other.behind, demanded.this)) {
			return true
		}
		p.conditions = p.conditions[:start]
	}
	return p.covered(behind, demanded)
}
